#!/usr/bin/env node
// A worker of a FaceTheory ISR table, in TypeScript with the AWS SDK, as services in this language behave towards it.
//
// It knows the rows of models.ts and nothing else: it publishes by Recipe A, replacing META as a whole. A lease is held
// iff lease_expires_at > now; a page is fresh iff now < generated_at + revalidate_seconds; ttl decides neither. The
// SDK's own retries are off, because a conditional write that got no answer may have been carried out: send() repeats,
// and says so.
//
// worker.go and worker.py are the same program. ../README.md shows the commands.
import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DeleteItemCommand, DynamoDBClient, DynamoDBServiceException, GetItemCommand, PutItemCommand, QueryCommand,
  TransactWriteItemsCommand, UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import type { AttributeValue, QueryCommandInput, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import {
  faceTheoryCacheLeaseModel, faceTheoryCacheMetadataModel, faceTheoryCacheVersionModel, faceTheoryRequestModel,
  fromItem, tableName,
} from './models.js';
import type {
  FaceTheoryCacheLease, FaceTheoryCacheMetadata, FaceTheoryCacheVersion, FaceTheoryRequest,
} from './models.js';

const LOCK_BUFFER = 3600; // ttl of a row beyond its use; garbage collection only
const REQUEST_BUFFER = 86400;
const LONGEST_LEASE = 3600; // a STARTED record without a time is left alone that long
const DONE = 0, FAILED = 1, USAGE = 2, SOMEBODY_ELSE_WON = 3;
const TRIES = 8;
const HELD_PAUSE = { from: 20, to: 80 }; // milliseconds between two attempts to get a lease that is held
const REFUSED_FOR_NOW = /^(TransactionConflict|Throttling|ProvisionedThroughputExceeded|RequestLimitExceeded)/;

// Ends the program with exit code 1, or 2 when the command line is at fault.
class Failure extends Error {
  constructor(message: string, readonly code: number = FAILED) {
    super(message);
  }
}

// --- Canonical forms: every language computes the same ---

const sha256Hex = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

const partitionKey = (cacheKey: string, tenant?: string): string =>
  `${tenant ? `TENANT#${tenant}#` : ''}CACHE#${sha256Hex(cacheKey)}`;

const idempotencyKey = (cacheKey: string, deployId: string, policyVersion: string): string =>
  sha256Hex(`${cacheKey}|${deployId}|${policyVersion}`);

type Inputs = ReadonlyMap<string, string>;

// SHA-256 of the RFC 8785 form, which follows JavaScript: sort() compares UTF-16 code units, JSON.stringify() escapes.
function requestHash(inputs: Inputs): string {
  const member = (name: string): string => `${JSON.stringify(name)}:${JSON.stringify(inputs.get(name))}`;
  return sha256Hex(`{${[...inputs.keys()].sort().map(member).join(',')}}`);
}

// --- The table ---

interface Table {
  readonly name: string;
  readonly client: DynamoDBClient;
}
type Item = Record<string, unknown>;

let opened: Table | undefined;
function openTable(): Table {
  if (opened) return opened;
  const name = tableName();
  if (!name) throw new Failure('FACETHEORY_CACHE_TABLE_NAME is not set: it names the DynamoDB table', USAGE);
  const endpoint = process.env['AWS_ENDPOINT_URL_DYNAMODB'] || process.env['AWS_ENDPOINT_URL'];
  const region = process.env['AWS_REGION'] || process.env['AWS_DEFAULT_REGION'];
  const requestHandler = { connectionTimeout: 3000, requestTimeout: 10000 };
  opened = { name, client: new DynamoDBClient({
    ...(endpoint ? { endpoint } : {}), ...(region ? { region } : {}), maxAttempts: 1, requestHandler }) };
  return opened;
}

// What an error of the SDK may carry; it documents no one type for all of them.
interface Fault extends Error {
  readonly code?: string;
  readonly $response?: unknown;
  readonly CancellationReasons?: readonly { readonly Code?: string }[];
}

// The answer, undefined when a condition failed; and whether an earlier try may have been carried out unseen.
async function send<Answer>(call: () => Promise<Answer>): Promise<{ answer?: Answer; doubtful: boolean }> {
  let doubtful = false;
  for (let attempt = 0; attempt < TRIES; ++attempt) {
    if (attempt) await sleep(Math.random() * 10 * 2 ** attempt);
    try {
      return { answer: await call(), doubtful };
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown;
      const error: Fault = thrown;
      const reasons = (error.CancellationReasons ?? []).map((reason) => reason.Code ?? 'None');
      const given = reasons.filter((code) => code !== 'None'), codes = given.length ? given : [error.name];
      if (codes.some((code) => code.startsWith('ConditionalCheckFailed'))) return { doubtful };
      const service = error instanceof DynamoDBServiceException ? error : undefined;
      // Errors of our own making have neither code nor response.
      if (!service && !error.code && !error.$response && error.name !== 'TimeoutError') throw error;
      if (!service || service.$fault === 'server' || service.name === 'TransactionInProgressException') doubtful = true;
      else if (!codes.every((code) => REFUSED_FOR_NOW.test(code))) throw error;
    }
  }
  throw new Failure('DynamoDB gave no answer to rely on; the write may or may not have happened');
}

// All that is stored, also what no model knows; empty when there is none.
async function readItem(table: Table, pk: string, sk: string): Promise<Item> {
  const command = new GetItemCommand({ TableName: table.name, Key: marshall({ pk, sk }), ConsistentRead: true });
  const { answer } = await send(() => table.client.send(command));
  return answer?.Item ? unmarshall(answer.Item) : {};
}

const readMetadata = async (table: Table, pk: string): Promise<Partial<FaceTheoryCacheMetadata>> =>
  fromItem(faceTheoryCacheMetadataModel, await readItem(table, pk, 'META'));

const readLease = async (table: Table, pk: string): Promise<Partial<FaceTheoryCacheLease>> =>
  fromItem(faceTheoryCacheLeaseModel, await readItem(table, pk, 'LOCK'));

const readRequest = async (table: Table, pk: string, sk: string): Promise<Partial<FaceTheoryRequest>> =>
  fromItem(faceTheoryRequestModel, await readItem(table, pk, sk));

// The generations that were kept, the oldest first.
async function readVersions(table: Table, pk: string): Promise<Partial<FaceTheoryCacheVersion>[]> {
  const found: Partial<FaceTheoryCacheVersion>[] = [];
  let next: Record<string, AttributeValue> | undefined;
  do {
    const request: QueryCommandInput = {
      TableName: table.name, ConsistentRead: true, KeyConditionExpression: '#pk = :pk AND begins_with(#sk, :prefix)',
      ExpressionAttributeNames: { '#pk': 'pk', '#sk': 'sk' },
      ExpressionAttributeValues: marshall({ ':pk': pk, ':prefix': 'VER#' }),
      ...(next ? { ExclusiveStartKey: next } : {}),
    };
    const { answer } = await send(() => table.client.send(new QueryCommand(request)));
    found.push(...(answer?.Items ?? []).map((item) => fromItem(faceTheoryCacheVersionModel, unmarshall(item))));
    next = answer?.LastEvaluatedKey;
  } while (next);
  return found;
}

type Value = string | number | boolean;
interface Condition {
  ConditionExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: Record<string, AttributeValue>;
}

// Every name aliased: status and ttl are reserved words.
function condition(expression: string, names: readonly string[], values: Readonly<Record<string, Value>>): Condition {
  return {
    ConditionExpression: expression,
    ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
    ExpressionAttributeValues: marshall(Object.fromEntries(Object.entries(values).map(([name, v]) => [`:${name}`, v]))),
  };
}

const marshalRow = (row: object): Record<string, AttributeValue> =>
  marshall({ ...row }, { removeUndefinedValues: true });

const now = (): number => Math.floor(Date.now() / 1000);

// --- The protocol ---

const HELD = '#lease_token = :token AND #lease_expires_at > :now';

interface Acquired {
  readonly lease: FaceTheoryCacheLease;
  readonly at: number; // the render begins then
}

// The lease, or undefined when it is held. Each try has a token of its own; whichever of them is stored is ours.
async function acquire(table: Table, pk: string, seconds: number): Promise<Acquired | undefined> {
  const tries: Acquired[] = [];
  const { answer, doubtful } = await send(() => {
    const at = now(), expires = at + seconds;
    const lease = { pk, sk: 'LOCK', lease_token: randomUUID(), lease_expires_at: expires, ttl: expires + LOCK_BUFFER };
    tries.push({ lease, at });
    return table.client.send(new PutItemCommand({
      TableName: table.name,
      Item: marshalRow(lease),
      ...condition(
        'attribute_not_exists(#pk) OR attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now',
        ['pk', 'lease_expires_at'], { now: at }),
    }));
  });
  if (answer) return tries.at(-1);
  if (!doubtful) return undefined;
  const stored = await readLease(table, pk);
  return tries.find(({ lease }) => lease.lease_token === stored.lease_token);
}

// The new expiry, or undefined when the lease is lost. Repeating it is harmless: the token stays.
async function refresh(table: Table, pk: string, token: string, seconds: number): Promise<number | undefined> {
  const expires = now() + seconds;
  const request = {
    TableName: table.name,
    Key: marshall({ pk, sk: 'LOCK' }),
    UpdateExpression: 'SET #lease_expires_at = :expires, #ttl = :ttl',
    ...condition(HELD, ['lease_token', 'lease_expires_at', 'ttl'],
      { token, now: now(), expires, ttl: expires + LOCK_BUFFER }),
  };
  const { answer } = await send(() => table.client.send(new UpdateItemCommand(request)));
  return answer && expires;
}

// False when the lease was not ours any more, which harms nobody.
async function release(table: Table, pk: string, token: string): Promise<boolean> {
  const request = {
    TableName: table.name,
    Key: marshall({ pk, sk: 'LOCK' }),
    ...condition('#lease_token = :token', ['lease_token'], { token }),
  };
  const { answer, doubtful } = await send(() => table.client.send(new DeleteItemCommand(request)));
  return Boolean(answer) || doubtful;
}

// META, the end of the lease and the end of the request, all or nothing. False: the lease or the request is lost.
//
// DynamoDB takes one operation per row, so the check of the lease is the condition of its delete. The client token
// makes a repeat of this very request harmless.
async function publish(table: Table, token: string, meta: FaceTheoryCacheMetadata, requestId?: string,
  owner?: string): Promise<boolean> {
  const held = condition(HELD, ['lease_token', 'lease_expires_at'], { token, now: now() });
  const steps: TransactWriteItem[] = [
    { Put: { TableName: table.name, Item: marshalRow(meta) } },
    { Delete: { TableName: table.name, Key: marshall({ pk: meta.pk, sk: 'LOCK' }), ...held } },
  ];
  if (requestId) steps.push({ Update: completion(table, { pk: meta.pk, id: requestId, owner }, meta.s3_key) });
  const command = new TransactWriteItemsCommand({ TransactItems: steps, ClientRequestToken: randomUUID() });
  const { answer, doubtful } = await send(() => table.client.send(command));
  return Boolean(answer) || (doubtful && (await readMetadata(table, meta.pk)).s3_key === meta.s3_key);
}

interface Claimed {
  readonly outcome: 'claimed' | 'completed' | 'in_progress' | 'mismatch' | 'failed';
  readonly row: Partial<FaceTheoryRequest>;
}

// What became of the claim, and the record that says so.
//
// A record whose time is over is taken over: its worker died. So is one that was handed back. A STARTED record without
// a time is of a service that knows the specification alone; whoever meets it first notes when, and it is taken over
// when that is longer ago than any lease lasts and nobody holds the page's lease. What is taken over must still be as
// it was read.
async function claim(table: Table, pk: string, requestId: string, inputs: Inputs, seconds: number): Promise<Claimed> {
  const sk = `REQ#${requestId}`, hash = requestHash(inputs), ours: FaceTheoryRequest[] = [];
  let met: Partial<FaceTheoryRequest> | undefined; // what stands in the way; replaced while it is as it was read
  for (let attempt = 0; attempt < 2 * TRIES; ++attempt) {
    const { claimed, unlessLeased } = await tryClaim(table, { pk, sk, hash, seconds }, ours, met);
    if (claimed) return { outcome: 'claimed', row: claimed };
    const before = met, row: Partial<FaceTheoryRequest> = await readRequest(table, pk, sk);
    met = undefined;
    if (row.status === undefined || (row.ttl !== undefined && row.ttl <= now())) continue; // expired counts as absent
    if (row.request_hash !== hash) return { outcome: 'mismatch', row };
    if (row.status === 'COMPLETED') return { outcome: 'completed', row };
    if (row.status === 'FAILED' && row.retryable === false) return { outcome: 'failed', row };
    const written = ours.some((one) => one.owner_token === row.owner_token);
    if (row.status === 'STARTED' && written) return { outcome: 'claimed', row };
    const until = freeAt(row);
    const leased = unlessLeased && before !== undefined && sameRow(before, row);
    if (until > now() || leased) {
      if (isWithoutTime(row) && row.first_seen_at === undefined) await noteFirstSeen(table, pk, sk, row);
      return { outcome: 'in_progress', row: { ...row, in_progress_expires_at: until } };
    }
    met = row;
  }
  throw new Failure(`the request ${requestId} kept changing hands`);
}

// One attempt: the record that it wrote, and whether it needed the page's lease to be free. `ours` gets all that it
// tried to write.
async function tryClaim(table: Table, wanted: { pk: string; sk: string; hash: string; seconds: number },
  ours: FaceTheoryRequest[], met?: Partial<FaceTheoryRequest>) {
  const { pk, sk, hash, seconds } = wanted;
  const makePut = () => {
    const started = now(), expires = started + seconds;
    const row = {
      pk, sk, request_hash: hash, status: 'STARTED', owner_token: randomUUID(), started_at: started,
      in_progress_expires_at: expires, ttl: expires + REQUEST_BUFFER, attempt: met ? (met.attempt ?? 1) + 1 : 1,
    };
    ours.push(row);
    const { expression, names, values } = met ? asRead(met) : { expression: '', names: [], values: {} };
    const taken = `attribute_not_exists(#pk) OR #ttl <= :now${met ? ` OR (${expression})` : ''}`;
    return { TableName: table.name, Item: marshalRow(row),
      ...condition(taken, ['pk', 'ttl', ...names], { now: started, ...values }) };
  };
  if (!met || !isWithoutTime(met)) {
    const { answer } = await send(() => table.client.send(new PutItemCommand(makePut())));
    return { claimed: answer && ours.at(-1), unlessLeased: false };
  }
  const free = condition('attribute_not_exists(#lease_expires_at) OR #lease_expires_at <= :now', ['lease_expires_at'],
    { now: now() });
  const steps: TransactWriteItem[] = [
    { Put: makePut() }, { ConditionCheck: { TableName: table.name, Key: marshall({ pk, sk: 'LOCK' }), ...free } },
  ];
  const command = new TransactWriteItemsCommand({ TransactItems: steps, ClientRequestToken: randomUUID() });
  const { answer } = await send(() => table.client.send(command));
  return { claimed: answer && ours.at(-1), unlessLeased: true };
}

const isWithoutTime = (row: Partial<FaceTheoryRequest>): boolean =>
  row.status === 'STARTED' && row.in_progress_expires_at === undefined;

// When a record that has not ended for good may be taken over, at the earliest.
function freeAt(row: Partial<FaceTheoryRequest>): number {
  if (row.status === 'FAILED') return 0;
  return row.in_progress_expires_at ?? (row.first_seen_at ?? now()) + LONGEST_LEASE + 1;
}

const CHANGING = ['status', 'request_hash', 'owner_token', 'in_progress_expires_at', 'first_seen_at'] as const;

const sameRow = (a: Partial<FaceTheoryRequest>, b: Partial<FaceTheoryRequest>): boolean =>
  CHANGING.every((name) => a[name] === b[name]);

// Expression, names and values that hold while nobody has changed the record.
function asRead(row: Partial<FaceTheoryRequest>) {
  const values: Record<string, Value> = {};
  const parts = CHANGING.map((name) => {
    const value = row[name];
    if (value === undefined) return `attribute_not_exists(#${name})`;
    values[name] = value;
    return `#${name} = :${name}`;
  });
  return { expression: parts.join(' AND '), names: CHANGING, values };
}

// Somebody else may do so first; then theirs counts.
async function noteFirstSeen(table: Table, pk: string, sk: string, row: Partial<FaceTheoryRequest>): Promise<void> {
  const { expression, names, values } = asRead(row);
  const command = new UpdateItemCommand({
    TableName: table.name, Key: marshall({ pk, sk }), UpdateExpression: 'SET #first_seen_at = :seen',
    ...condition(expression, names, { ...values, seen: now() }),
  });
  await send(() => table.client.send(command));
}

// A record that is ours. Services that know nothing of owner_token go by the status alone.
interface Owned {
  readonly pk: string;
  readonly id: string;
  readonly owner: string | undefined;
}

// An update of a record that is ours and in progress; `also` is a further condition.
function change(table: Table, { pk, id, owner }: Owned, update: string, values: Readonly<Record<string, Value>>,
  also = '') {
  const expression = `#status = :started${owner ? ' AND #owner_token = :owner' : ''}${also}`;
  const names = new Set([...(update + expression).matchAll(/#(\w+)/g)].map(([alias]) => alias.slice(1)));
  return {
    TableName: table.name, Key: marshall({ pk, sk: `REQ#${id}` }), UpdateExpression: update,
    ...condition(expression, [...names], { ...values, started: 'STARTED', ...(owner ? { owner } : {}) }),
  };
}

// STARTED to COMPLETED.
const completion = (table: Table, owned: Owned, result: string) => change(table, owned,
  'SET #status = :completed, #result_s3_key = :result, #ttl = :ttl REMOVE #in_progress_expires_at, #error',
  { completed: 'COMPLETED', result, ttl: now() + REQUEST_BUFFER });

// Whether the update took place. Where its answer was lost, the record tells: `done` judges it.
async function changed(table: Table, { pk, id, owner }: Owned, request: ReturnType<typeof change>,
  done: (row: Partial<FaceTheoryRequest>) => boolean): Promise<boolean> {
  const { answer } = await send(() => table.client.send(new UpdateItemCommand(request)));
  if (answer) return true;
  const row = await readRequest(table, pk, `REQ#${id}`);
  return row.owner_token === owner && done(row);
}

const complete = (table: Table, owned: Owned, result: string): Promise<boolean> =>
  changed(table, owned, completion(table, owned, result),
    (row) => row.status === 'COMPLETED' && row.result_s3_key === result);

// The time until which the claim is kept, or undefined when it is lost. A call that arrives late shortens nothing.
async function extend(table: Table, owned: Owned, seconds: number): Promise<number | undefined> {
  const until = now() + seconds;
  const request = change(table, owned, 'SET #in_progress_expires_at = :until, #ttl = :ttl',
    { until, ttl: until + REQUEST_BUFFER },
    ' AND (attribute_not_exists(#in_progress_expires_at) OR #in_progress_expires_at <= :until)');
  const kept = await changed(table, owned, request,
    (row) => row.status === 'STARTED' && (row.in_progress_expires_at ?? 0) >= until);
  return kept ? (await readRequest(table, owned.pk, `REQ#${owned.id}`)).in_progress_expires_at : undefined;
}

// Hands the record back: the same request may be claimed anew, if it is retryable.
function fail(table: Table, owned: Owned, error: string | undefined, retryable: boolean): Promise<boolean> {
  const update = `SET #status = :failed, #retryable = :retryable, #ttl = :ttl${
    error === undefined ? '' : ', #error = :error'} REMOVE #in_progress_expires_at`;
  const request = change(table, owned, update, { failed: 'FAILED', retryable, ttl: now() + REQUEST_BUFFER,
    ...(error === undefined ? {} : { error }) });
  return changed(table, owned, request, (row) => row.status === 'FAILED');
}

function verdict(meta: Partial<FaceTheoryCacheMetadata>): 'fresh' | 'stale' | 'missing' {
  if (!meta.s3_key) return 'missing';
  return now() < (meta.generated_at ?? 0) + (meta.revalidate_seconds ?? 0) ? 'fresh' : 'stale';
}

// --- The commands: each returns what to print; exitCode says what the outcome means to a shell ---

type Answer = { outcome: string } & Item;

// The options of a command line. A command declares what it needs, so what it reads is there.
class Options {
  readonly texts = new Map<string, string>();
  readonly numbers = new Map<string, number>();
  readonly inputs = new Map<string, string>();
  key = '';
  pk = '';

  text(name: string): string {
    return this.texts.get(name) ?? missing(name);
  }
  number(name: string, otherwise?: number): number {
    return this.numbers.get(name) ?? otherwise ?? missing(name);
  }
  owned(): Owned {
    return { pk: this.pk, id: this.text('id'), owner: this.text('token') };
  }
}

function missing(name: string): never {
  throw new Failure(`--${name} is needed`, USAGE);
}

async function runAcquire(o: Options): Promise<Answer> {
  const table = openTable();
  const acquired = await acquire(table, o.pk, o.number('for'));
  if (!acquired) return { outcome: 'held', lease_expires_at: (await readLease(table, o.pk)).lease_expires_at };
  const { lease_token, lease_expires_at } = acquired.lease;
  return { outcome: 'acquired', lease_token, lease_expires_at, acquired_at: acquired.at };
}

async function runRefresh(o: Options): Promise<Answer> {
  const expires = await refresh(openTable(), o.pk, o.text('token'), o.number('for'));
  return expires ? { outcome: 'refreshed', lease_expires_at: expires } : { outcome: 'lost' };
}

const runRelease = async (o: Options): Promise<Answer> =>
  ({ outcome: await release(openTable(), o.pk, o.text('token')) ? 'released' : 'lost' });

async function runPublish(o: Options): Promise<Answer> {
  const meta: FaceTheoryCacheMetadata = {
    pk: o.pk, sk: 'META', s3_key: o.text('s3-key'), generated_at: o.number('generated-at', now()),
    revalidate_seconds: o.number('revalidate'),
  };
  const etag = o.texts.get('etag'), ttl = o.numbers.get('ttl-seconds');
  if (etag !== undefined) meta.etag = etag;
  if (ttl !== undefined) {
    if (ttl < meta.revalidate_seconds) {
      throw new Failure('--ttl-seconds ends inside --revalidate: the table would delete a fresh page', USAGE);
    }
    meta.ttl = meta.generated_at + ttl;
  }
  const done = await publish(openTable(), o.text('token'), meta, o.texts.get('id'), o.texts.get('owner'));
  return done ? { outcome: 'published', ...meta } : { outcome: 'lost' };
}

async function runRead(o: Options): Promise<Answer> {
  const item = await readItem(openTable(), o.pk, 'META');
  return { outcome: verdict(fromItem(faceTheoryCacheMetadataModel, item)), ...item };
}

const runVersions = async (o: Options): Promise<Answer> =>
  ({ outcome: 'done', versions: await readVersions(openTable(), o.pk) });

async function runClaim(o: Options): Promise<Answer> {
  const { outcome, row } = await claim(openTable(), o.pk, o.text('id'), o.inputs, o.number('for', 60));
  const { request_hash, result_s3_key, in_progress_expires_at, attempt, error, owner_token, started_at } = row;
  const told = { outcome, request_hash, result_s3_key, in_progress_expires_at, attempt, error };
  return outcome === 'claimed' ? { ...told, owner_token, started_at } : told; // the token is its owner's alone
}

async function runExtend(o: Options): Promise<Answer> {
  const until = await extend(openTable(), o.owned(), o.number('for'));
  return until ? { outcome: 'extended', in_progress_expires_at: until } : { outcome: 'lost' };
}

async function runComplete(o: Options): Promise<Answer> {
  const result = o.text('result');
  const done = await complete(openTable(), o.owned(), result);
  return done ? { outcome: 'completed', result_s3_key: result } : { outcome: 'lost' };
}

async function runFail(o: Options): Promise<Answer> {
  const final = o.texts.has('final');
  const done = await fail(openTable(), o.owned(), o.texts.get('error'), !final);
  return { outcome: !done ? 'lost' : final ? 'given_up' : 'handed_back' };
}

// Publishes --cycles times against whoever else wants the page; previous_s3_key links all publishes to a chain.
async function runContend(o: Options): Promise<Answer> {
  const table = openTable(), cycles = o.number('cycles'), giveUp = performance.now() + o.number('deadline', 300) * 1000;
  let published = 0;
  while (published < cycles) {
    if (performance.now() > giveUp) throw new Failure(`${published} of ${cycles} cycles done within --deadline`);
    const acquired = await acquire(table, o.pk, o.number('for'));
    if (!acquired) {
      await sleep(HELD_PAUSE.from + Math.random() * (HELD_PAUSE.to - HELD_PAUSE.from));
      continue;
    }
    const { lease_token } = acquired.lease, before = await readMetadata(table, o.pk);
    const meta = {
      pk: o.pk, sk: 'META', s3_key: `typescript/${randomUUID()}.html`, revalidate_seconds: 60,
      generated_at: Math.max(acquired.at, before.generated_at ?? 0, before.last_generated_at ?? 0),
    };
    if (!await publish(table, lease_token, meta)) continue;
    ++published;
    appendFileSync(o.text('log'), `${JSON.stringify({
      language: 'typescript', lease_token, acquired_at: acquired.at, generated_at: meta.generated_at,
      s3_key: meta.s3_key, previous_s3_key: before.s3_key ?? '',
    })}\n`);
  }
  return { outcome: 'done', published };
}

interface Command {
  readonly run: (options: Options) => Answer | Promise<Answer>;
  readonly needed: readonly string[];
  readonly allowed: readonly string[]; // besides --tenant and --pk
}
const command = (run: Command['run'], needed = '', allowed = ''): Command =>
  ({ run, needed: needed.split(' ').filter(Boolean), allowed: allowed.split(' ').filter(Boolean) });

const COMMANDS: ReadonlyMap<string, Command> = new Map(Object.entries({
  key: command(({ pk }) => ({ outcome: 'done', pk })),
  hash: command((o) => ({ outcome: 'done', request_hash: requestHash(o.inputs) }), 'input'),
  'idempotency-key': command((o) =>
    ({ outcome: 'done', idempotency_key: idempotencyKey(o.key, o.text('deploy'), o.text('policy')) }), 'deploy policy'),
  acquire: command(runAcquire, 'for'),
  refresh: command(runRefresh, 'token for'),
  release: command(runRelease, 'token'),
  publish: command(runPublish, 'token s3-key revalidate', 'generated-at etag ttl-seconds id owner'),
  read: command(runRead),
  versions: command(runVersions),
  claim: command(runClaim, 'id input', 'for'),
  extend: command(runExtend, 'id token for'),
  complete: command(runComplete, 'id token result'),
  fail: command(runFail, 'id token', 'error final'),
  contend: command(runContend, 'cycles for log', 'deadline'),
}));
const NUMBERS = new Set(['for', 'revalidate', 'generated-at', 'ttl-seconds', 'cycles', 'deadline']);
const FLAGS = new Set(['final']);

// Of a claim only "claimed" is 0, so that a script works on what it was given and on nothing else.
function exitCode(run: Command['run'], outcome: string): number {
  if (run === runClaim) return outcome === 'claimed' ? DONE : SOMEBODY_ELSE_WON;
  return outcome === 'held' || outcome === 'lost' ? SOMEBODY_ELSE_WON : DONE;
}

// The command's function and its options by name; the pk is always there.
function parse(words: readonly string[]): { run: Command['run']; options: Options } {
  const positional: string[] = [], options = new Options();
  for (let i = 0; i < words.length; ++i) {
    const word = words[i] ?? '';
    if (!word.startsWith('--')) {
      positional.push(word);
      continue;
    }
    const name = word.slice(2), value = FLAGS.has(name) ? '' : words[++i];
    if (value === undefined) throw new Failure(`--${name} needs a value`, USAGE);
    options.texts.set(name, value);
    if (name === 'input') {
      const mark = value.indexOf('='), member = value.slice(0, mark);
      if (mark < 1 || options.inputs.has(member)) throw new Failure('--input takes name=value, each name once', USAGE);
      options.inputs.set(member, value.slice(mark + 1));
    } else if (NUMBERS.has(name)) {
      if (!/^[0-9]{1,15}$/.test(value)) throw new Failure(`--${name} takes a whole number, not '${value}'`, USAGE);
      options.numbers.set(name, Number(value));
    }
  }

  const [name = '', key] = positional, chosen = COMMANDS.get(name);
  if (!chosen) throw new Failure(`'${name}' is none of ${[...COMMANDS.keys()].join(', ')}`, USAGE);
  for (const option of chosen.needed) {
    if (!options.texts.has(option)) throw new Failure(`${name} needs --${option}`, USAGE);
  }
  for (const option of options.texts.keys()) {
    const known = [...chosen.needed, ...chosen.allowed, 'tenant', 'pk'].includes(option);
    if (!known) throw new Failure(`${name} takes no --${option}`, USAGE);
  }
  if (options.number('for', 2) < 2) {
    throw new Failure('--for takes two seconds or more: languages round differently', USAGE);
  }
  if (name === 'hash') return { run: chosen.run, options };
  const tenant = options.texts.get('tenant'), pk = options.texts.get('pk');
  if (positional.length + (pk === undefined ? 0 : 1) !== 2 || (name === 'idempotency-key' && pk !== undefined)) {
    throw new Failure(`${name} needs one cache key, or --pk`, USAGE);
  }
  if (tenant !== undefined && (!tenant || tenant.includes('#') || pk !== undefined)) {
    throw new Failure("--tenant is not empty, has no '#', and does not go with --pk", USAGE);
  }
  options.key = key ?? '';
  options.pk = pk ?? partitionKey(options.key, tenant);
  return { run: chosen.run, options };
}

// What a command line answers, and its exit code.
async function execute(words: readonly string[]): Promise<{ result: Answer; code: number }> {
  try {
    const { run, options } = parse(words);
    const result = await run(options);
    return { result, code: exitCode(run, result.outcome) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    console.error(`worker.ts: ${message}`);
    const code = error instanceof Failure ? error.code : FAILED;
    return { result: { outcome: code === USAGE ? 'usage' : 'failed', message }, code };
  }
}

const print = (result: Item): void =>
  console.log(JSON.stringify(result, (_, value: unknown) => (value instanceof Set ? [...value] : value)));

// A service: each line of stdin is a command line, as a JSON array; each is answered by a line with its exit_code.
async function session(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const { result, code } = await execute(JSON.parse(line) as string[]);
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
