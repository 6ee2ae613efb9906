#!/usr/bin/env node
// A worker of a FaceTheory ISR table, in JavaScript with the AWS SDK, as services in this language behave towards it.
//
// It knows META, LOCK and REQ# rows and nothing else: it publishes by Recipe A, replacing META as a whole. A lease
// is held iff lease_expires_at > now; a page is fresh iff now < generated_at + revalidate_seconds; ttl decides
// neither. The SDK's own retries are off, because a conditional write that got no answer may have been carried out:
// send() repeats, and says so.
//
// worker.go and worker.py are the same program. ../README.md shows the commands.
import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DeleteItemCommand, DynamoDBClient, DynamoDBServiceException, GetItemCommand, PutItemCommand,
  TransactWriteItemsCommand, UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';

const LOCK_BUFFER = 3600; // ttl of a row beyond its use; garbage collection only
const REQUEST_BUFFER = 86400;
const DONE = 0, FAILED = 1, USAGE = 2, SOMEBODY_ELSE_WON = 3;
const TRIES = 8;
const HELD_PAUSE = { from: 20, to: 80 }; // milliseconds between two attempts to get a lease that is held
const REFUSED_FOR_NOW = /^(TransactionConflict|Throttling|ProvisionedThroughputExceeded|RequestLimitExceeded)/;

// Ends the program with exit code 1, or 2 when the command line is at fault.
class Failure extends Error {
  constructor(message, code = FAILED) {
    super(message);
    this.code = code;
  }
}

// --- Canonical forms: every language computes the same ---

const sha256Hex = (text) => createHash('sha256').update(text, 'utf8').digest('hex');

const partitionKey = (cacheKey, tenant) => `${tenant ? `TENANT#${tenant}#` : ''}CACHE#${sha256Hex(cacheKey)}`;

const idempotencyKey = (cacheKey, deployId, policyVersion) => sha256Hex(`${cacheKey}|${deployId}|${policyVersion}`);

// SHA-256 of the RFC 8785 form, which follows JavaScript: sort() compares UTF-16 code units, JSON.stringify() escapes.
function requestHash(inputs) {
  const member = (name) => `${JSON.stringify(name)}:${JSON.stringify(inputs.get(name))}`;
  return sha256Hex(`{${[...inputs.keys()].sort().map(member).join(',')}}`);
}

// --- The table ---

let opened;
function openTable() {
  if (opened) return opened;
  const name = process.env.FACETHEORY_CACHE_TABLE_NAME;
  if (!name) throw new Failure('FACETHEORY_CACHE_TABLE_NAME is not set: it names the DynamoDB table', USAGE);
  const endpoint = process.env.AWS_ENDPOINT_URL_DYNAMODB || process.env.AWS_ENDPOINT_URL || undefined;
  const region = process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || undefined;
  const requestHandler = { connectionTimeout: 3000, requestTimeout: 10000 };
  opened = { name, client: new DynamoDBClient({ endpoint, region, maxAttempts: 1, requestHandler }) };
  return opened;
}

// The answer, undefined when a condition failed; and whether an earlier try may have been carried out unseen.
async function send(table, makeCommand) {
  let doubtful = false;
  for (let attempt = 0; attempt < TRIES; ++attempt) {
    if (attempt) await sleep(Math.random() * 10 * 2 ** attempt);
    try {
      return { answer: await table.client.send(makeCommand()), doubtful };
    } catch (error) {
      const reasons = (error.CancellationReasons ?? []).map((reason) => reason.Code).filter((code) => code !== 'None');
      const codes = reasons.length ? reasons : [error.name];
      if (codes.some((code) => code.startsWith('ConditionalCheckFailed'))) return { doubtful };
      const answered = error instanceof DynamoDBServiceException;
      // Errors of our own making have neither code nor response.
      if (!answered && !error.code && !error.$response && error.name !== 'TimeoutError') throw error;
      if (!answered || error.$fault === 'server' || error.name === 'TransactionInProgressException') doubtful = true;
      else if (!codes.every((code) => REFUSED_FOR_NOW.test(code))) throw error;
    }
  }
  throw new Failure('DynamoDB gave no answer to rely on; the write may or may not have happened');
}

async function readRow(table, pk, sk) {
  const request = { TableName: table.name, Key: marshall({ pk, sk }), ConsistentRead: true };
  const { answer } = await send(table, () => new GetItemCommand(request));
  return answer.Item ? unmarshall(answer.Item) : {};
}

// Every name aliased: status and ttl are reserved words.
const condition = (expression, names, values) => ({
  ConditionExpression: expression,
  ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
  ExpressionAttributeValues: marshall(Object.fromEntries(Object.entries(values).map(([name, v]) => [`:${name}`, v]))),
});

const now = () => Math.floor(Date.now() / 1000);

// --- The protocol ---

const HELD = '#lease_token = :token AND #lease_expires_at > :now';

// The lease, or undefined when it is held. Each try has a token of its own; whichever of them is stored is ours.
async function acquire(table, pk, seconds) {
  const tries = [];
  const { answer, doubtful } = await send(table, () => {
    const started = now();
    const lease = { lease_token: randomUUID(), lease_expires_at: started + seconds };
    tries.push({ ...lease, acquired_at: started });
    return new PutItemCommand({
      TableName: table.name,
      Item: marshall({ pk, sk: 'LOCK', ...lease, ttl: lease.lease_expires_at + LOCK_BUFFER }),
      ...condition(
        'attribute_not_exists(#pk) OR attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now',
        ['pk', 'lease_expires_at'], { now: started }),
    });
  });
  if (answer) return tries.at(-1);
  if (!doubtful) return undefined;
  const stored = await readRow(table, pk, 'LOCK');
  return tries.find((lease) => lease.lease_token === stored.lease_token);
}

// The new expiry, or undefined when the lease is lost. Repeating it is harmless: the token stays.
async function refresh(table, pk, token, seconds) {
  const expires = now() + seconds;
  const request = {
    TableName: table.name,
    Key: marshall({ pk, sk: 'LOCK' }),
    UpdateExpression: 'SET #lease_expires_at = :expires, #ttl = :ttl',
    ...condition(HELD, ['lease_token', 'lease_expires_at', 'ttl'],
      { token, now: now(), expires, ttl: expires + LOCK_BUFFER }),
  };
  const { answer } = await send(table, () => new UpdateItemCommand(request));
  return answer && expires;
}

// False when the lease was not ours any more, which harms nobody.
async function release(table, pk, token) {
  const request = {
    TableName: table.name,
    Key: marshall({ pk, sk: 'LOCK' }),
    ...condition('#lease_token = :token', ['lease_token'], { token }),
  };
  const { answer, doubtful } = await send(table, () => new DeleteItemCommand(request));
  return Boolean(answer) || doubtful;
}

// META, the end of the lease and the end of the request, all or nothing. False: the lease or the request is lost.
//
// DynamoDB takes one operation per row, so the check of the lease is the condition of its delete. The client token
// makes a repeat of this very request harmless.
async function publish(table, pk, token, meta, requestId, owner) {
  const held = condition(HELD, ['lease_token', 'lease_expires_at'], { token, now: now() });
  const steps = [
    { Put: { TableName: table.name, Item: marshall({ pk, sk: 'META', ...meta }) } },
    { Delete: { TableName: table.name, Key: marshall({ pk, sk: 'LOCK' }), ...held } },
  ];
  if (requestId) steps.push({ Update: completion(table, pk, requestId, owner, meta.s3_key) });
  const request = { TransactItems: steps, ClientRequestToken: randomUUID() };
  const { answer, doubtful } = await send(table, () => new TransactWriteItemsCommand(request));
  return Boolean(answer) || (doubtful && (await readRow(table, pk, 'META')).s3_key === meta.s3_key);
}

// STARTED to COMPLETED. Services that know nothing of owner_token go by the status alone.
const completion = (table, pk, requestId, owner, result) => ({
  TableName: table.name,
  Key: marshall({ pk, sk: `REQ#${requestId}` }),
  UpdateExpression: 'SET #status = :completed, #result_s3_key = :result',
  ...condition(owner ? '#status = :started AND #owner_token = :owner' : '#status = :started',
    ['status', 'result_s3_key', ...(owner ? ['owner_token'] : [])],
    { completed: 'COMPLETED', started: 'STARTED', result, ...(owner ? { owner } : {}) }),
});

// What became of the claim, and of whose record.
async function claim(table, pk, requestId, inputs, seconds) {
  const hash = requestHash(inputs), tokens = [];
  const { answer } = await send(table, () => {
    const started = now();
    tokens.push(randomUUID());
    const row = {
      pk, sk: `REQ#${requestId}`, request_hash: hash, status: 'STARTED', owner_token: tokens.at(-1),
      started_at: started, in_progress_expires_at: started + seconds, ttl: started + seconds + REQUEST_BUFFER,
    };
    return new PutItemCommand({ TableName: table.name, Item: marshall(row),
      ...condition('attribute_not_exists(#pk) OR #ttl <= :now', ['pk', 'ttl'], { now: started }) });
  });
  const row = answer ? { owner_token: tokens.at(-1) } : await readRow(table, pk, `REQ#${requestId}`);
  if (tokens.includes(row.owner_token)) return { outcome: 'claimed', owner_token: row.owner_token, request_hash: hash };
  if ((row.request_hash ?? hash) !== hash) return { outcome: 'mismatch', request_hash: row.request_hash };
  const outcome = { COMPLETED: 'completed', FAILED: 'failed' }[row.status] ?? 'in_progress';
  return { outcome, result_s3_key: row.result_s3_key, in_progress_expires_at: row.in_progress_expires_at };
}

async function complete(table, pk, requestId, owner, result) {
  const request = completion(table, pk, requestId, owner, result);
  const { answer } = await send(table, () => new UpdateItemCommand(request));
  if (answer) return true;
  const row = await readRow(table, pk, `REQ#${requestId}`);
  return row.status === 'COMPLETED' && row.owner_token === owner && row.result_s3_key === result;
}

function verdict(meta) {
  if (!meta.s3_key) return 'missing';
  return now() < (meta.generated_at ?? 0) + (meta.revalidate_seconds ?? 0) ? 'fresh' : 'stale';
}

// --- The commands: each returns what to print; what the outcome means to a shell stands in EXIT_CODES ---

const runKey = ({ pk }) => ({ outcome: 'done', pk });

const runHash = ({ input }) => ({ outcome: 'done', request_hash: requestHash(input) });

const runIdempotencyKey = ({ key, deploy, policy }) =>
  ({ outcome: 'done', idempotency_key: idempotencyKey(key, deploy, policy) });

async function runAcquire({ pk, for: seconds }) {
  const table = openTable();
  const lease = await acquire(table, pk, seconds);
  if (lease) return { outcome: 'acquired', ...lease };
  return { outcome: 'held', lease_expires_at: (await readRow(table, pk, 'LOCK')).lease_expires_at };
}

async function runRefresh({ pk, token, for: seconds }) {
  const expires = await refresh(openTable(), pk, token, seconds);
  return expires ? { outcome: 'refreshed', lease_expires_at: expires } : { outcome: 'lost' };
}

const runRelease = async ({ pk, token }) => ({ outcome: await release(openTable(), pk, token) ? 'released' : 'lost' });

async function runPublish(options) {
  const meta = {
    s3_key: options['s3-key'], generated_at: options['generated-at'] ?? now(), revalidate_seconds: options.revalidate,
  };
  if (options.etag !== undefined) meta.etag = options.etag;
  const ttl = options['ttl-seconds'];
  if (ttl < options.revalidate) {
    throw new Failure('--ttl-seconds ends inside --revalidate: the table would delete a fresh page', USAGE);
  }
  if (ttl !== undefined) meta.ttl = meta.generated_at + ttl;
  const done = await publish(openTable(), options.pk, options.token, meta, options.id, options.owner);
  return done ? { outcome: 'published', ...meta } : { outcome: 'lost' };
}

async function runRead({ pk }) {
  const meta = await readRow(openTable(), pk, 'META');
  return { outcome: verdict(meta), ...meta };
}

const runClaim = ({ pk, id, input, for: seconds = 60 }) => claim(openTable(), pk, id, input, seconds);

async function runComplete({ pk, id, token, result }) {
  const done = await complete(openTable(), pk, id, token, result);
  return done ? { outcome: 'completed', result_s3_key: result } : { outcome: 'lost' };
}

// Publishes --cycles times against whoever else wants the page; previous_s3_key links all publishes to a chain.
async function runContend({ pk, cycles, for: seconds, log, deadline = 300 }) {
  const table = openTable(), giveUp = performance.now() + deadline * 1000;
  let published = 0;
  while (published < cycles) {
    if (performance.now() > giveUp) throw new Failure(`${published} of ${cycles} cycles done within --deadline`);
    const lease = await acquire(table, pk, seconds);
    if (!lease) {
      await sleep(HELD_PAUSE.from + Math.random() * (HELD_PAUSE.to - HELD_PAUSE.from));
      continue;
    }
    const before = await readRow(table, pk, 'META');
    const meta = {
      s3_key: `javascript/${randomUUID()}.html`, revalidate_seconds: 60,
      generated_at: Math.max(lease.acquired_at, before.generated_at ?? 0, before.last_generated_at ?? 0),
    };
    if (!await publish(table, pk, lease.lease_token, meta)) continue;
    ++published;
    appendFileSync(log, `${JSON.stringify({
      language: 'javascript', lease_token: lease.lease_token, acquired_at: lease.acquired_at,
      generated_at: meta.generated_at, s3_key: meta.s3_key, previous_s3_key: before.s3_key ?? '',
    })}\n`);
  }
  return { outcome: 'done', published };
}

// name: what to run, the options it needs, the options it takes besides (--tenant and --pk always)
const COMMANDS = new Map(Object.entries({
  key: [runKey, [], []],
  hash: [runHash, ['input'], []],
  'idempotency-key': [runIdempotencyKey, ['deploy', 'policy'], []],
  acquire: [runAcquire, ['for'], []],
  refresh: [runRefresh, ['token', 'for'], []],
  release: [runRelease, ['token'], []],
  publish: [runPublish, ['token', 's3-key', 'revalidate'], ['generated-at', 'etag', 'ttl-seconds', 'id', 'owner']],
  read: [runRead, [], []],
  claim: [runClaim, ['id', 'input'], ['for']],
  complete: [runComplete, ['id', 'token', 'result'], []],
  contend: [runContend, ['cycles', 'for', 'log'], ['deadline']],
}));
const NUMBERS = new Set(['for', 'revalidate', 'generated-at', 'ttl-seconds', 'cycles', 'deadline']);
const EXIT_CODES = { held: SOMEBODY_ELSE_WON, lost: SOMEBODY_ELSE_WON, in_progress: SOMEBODY_ELSE_WON,
  mismatch: SOMEBODY_ELSE_WON, failed: SOMEBODY_ELSE_WON };

// The command's function and its options by name; "key" is the cache key and "pk" always there.
function parse(words) {
  const positional = [], options = {};
  for (let i = 0; i < words.length; ++i) {
    if (!words[i].startsWith('--')) {
      positional.push(words[i]);
      continue;
    }
    const name = words[i].slice(2), value = words[++i];
    if (value === undefined) throw new Failure(`--${name} needs a value`, USAGE);
    if (name === 'input') {
      const mark = value.indexOf('='), member = value.slice(0, mark);
      options.input ??= new Map();
      if (mark < 1 || options.input.has(member)) throw new Failure('--input takes name=value, each name once', USAGE);
      options.input.set(member, value.slice(mark + 1));
    } else if (NUMBERS.has(name)) {
      if (!/^[0-9]{1,15}$/.test(value)) throw new Failure(`--${name} takes a whole number, not '${value}'`, USAGE);
      options[name] = Number(value);
    } else {
      options[name] = value;
    }
  }

  const [command = '', key] = positional;
  if (!COMMANDS.has(command)) throw new Failure(`'${command}' is none of ${[...COMMANDS.keys()].join(', ')}`, USAGE);
  const [run, needed, allowed] = COMMANDS.get(command);
  for (const name of needed) {
    if (options[name] === undefined) throw new Failure(`${command} needs --${name}`, USAGE);
  }
  for (const name of Object.keys(options)) {
    const known = [...needed, ...allowed, 'tenant', 'pk'].includes(name);
    if (!known) throw new Failure(`${command} takes no --${name}`, USAGE);
  }
  if (options.for < 2) throw new Failure('--for takes two seconds or more: languages round differently', USAGE);
  if (command === 'hash') return { run, options };
  const { tenant, pk } = options;
  if (positional.length + (pk !== undefined) !== 2 || (command === 'idempotency-key' && pk !== undefined)) {
    throw new Failure(`${command} needs one cache key, or --pk`, USAGE);
  }
  if (tenant !== undefined && (!tenant || tenant.includes('#') || pk !== undefined)) {
    throw new Failure("--tenant is not empty, has no '#', and does not go with --pk", USAGE);
  }
  return { run, options: pk === undefined ? { ...options, key, pk: partitionKey(key, tenant) } : options };
}

// What a command line answers, and its exit code.
async function execute(words) {
  try {
    const { run, options } = parse(words);
    const result = await run(options);
    return { result, code: EXIT_CODES[result.outcome] ?? DONE };
  } catch (error) {
    console.error(`worker.mjs: ${error.message}`);
    const code = error instanceof Failure ? error.code : FAILED;
    return { result: { outcome: code === USAGE ? 'usage' : 'failed', message: error.message }, code };
  }
}

const print = (result) => console.log(JSON.stringify(result, (_, value) => (value instanceof Set ? [...value] : value)));

// A service: each line of stdin is a command line, as a JSON array; each is answered by a line with its exit_code.
async function session() {
  for await (const line of createInterface({ input: process.stdin })) {
    const { result, code } = await execute(JSON.parse(line));
    print({ ...result, exit_code: code });
  }
}

const words = process.argv.slice(2);
if (words.length === 1 && words[0] === 'session') {
  await session();
} else {
  const { result, code } = await execute(words);
  print(result);
  process.exitCode = code;
}
