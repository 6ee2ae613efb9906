// Requests and the keys that FaceTheory (TypeScript, 4.0) makes of them, one JSON object per line; page_key_test.cc
// compares. What reads them is the platform's own: URLSearchParams, decodeURIComponent, String.prototype.trim and the
// order of an object's members. Put together at random; the seed is fixed.
import { createHash } from 'node:crypto';

let state = 7;
const below = (n) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * n);
};
const one = (list) => list[below(list.length)];
const some = (most, make) => Array.from({ length: below(most + 1) }, make);

// --- what FaceTheory makes of a request

const sortedNames = (object) => Object.keys(object).sort((a, b) => a.localeCompare(b));

// Segments of the path as it was sent stand for the variables of the pattern.
function paramsOf(pattern, path) {
  const params = Object.create(null);
  const segments = path.slice(1).split('/');
  pattern.slice(1).split('/').forEach((part, i) => {
    const variable = /^\{(\w+)([+*]?)\}$/.exec(part);
    if (!variable) return;
    const value = variable[2] ? segments.slice(i).join('/') : segments[i];
    if (value) params[variable[1]] = value;
  });
  return params;
}

// FaceTheory drops a '?' at the beginning, and URLSearchParams another.
function queryOf(text) {
  const query = Object.create(null);
  for (const [name, value] of new URLSearchParams(text.replace(/^\?/, ''))) (query[name] ??= []).push(value);
  return query;
}

function cookiesOf(fields) {
  const cookies = Object.create(null);
  for (const cookie of fields.flatMap((field) => field.split(';'))) {
    const [, name, quoted] = /^([^=]+)=(.*)$/.exec(cookie.trim()) ?? [];
    if (!name?.trim()) continue;
    const value = quoted.trim().replace(/^"(.*)"$/, '$1');
    try {
      cookies[name.trim()] = decodeURIComponent(value);
    } catch {
      cookies[name.trim()] = value;
    }
  }
  return cookies;
}

function pkOf(pattern, { path, query, fields }) {
  const params = paramsOf(pattern, path);
  const parameters = queryOf(query);
  const cookies = cookiesOf(fields);
  const text = (name, value) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
  const parts = [
    ...sortedNames(params).map((name) => text(name, params[name])),
    ...sortedNames(parameters).flatMap((name) => parameters[name].map((value) => text(name, value))),
  ];
  const lines = sortedNames(cookies).map((name) => `${name}=${cookies[name]}`);
  const digest = createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 24);
  return `CACHE#default::${pattern}?${parts.join('&')}${lines.length > 0 ? `#cookies=${digest}` : ''}`;
}

// --- requests

const patterns = ['/', '/news/{slug}', '/shop/{shop}/{Item}', '/docs/{proxy*}', '/files/{proxy+}'];
const letters = [
  'a', 'B', 'z9', '%41', '%7E', '~', '%c3%a9', '%C3%A9', '%2F', '%2f', '%20', '+', '%25', '!', "'", '(', '*', '&', '=',
  ':', '@', ',', 'x.y', '%3B', '%e2%82%ac',
];
const segment = () => one(letters) + some(3, () => one(letters)).join('');
const pathOf = (pattern) =>
  pattern
    .split('/')
    .map((part) =>
      /[+*]\}/.test(part) ? [segment(), ...some(2, segment)].join('/') : part.startsWith('{') ? segment() : part)
    .join('/');

const names = [
  'a', 'b', 'B', '%62', 'c', 'utm_source', 'gclid', '1', '10', '2', '%31', 'b%E2%80%8B', '1%E2%80%8B', 'n+m', 'n%20m',
  '%C3%A9', '', '%', '%zz', '__proto__', 'constructor',
];
const texts = [
  '', '1', 'x', '%26', '+', '%2B', 'a=b', '%', '%2', '%zz', '%C3%A9', '%E2%82%AC', "it's", '/', '?', '%0A', '%00',
];
const parameter = () => one([() => `${one(names)}=${one(texts)}`, () => one(names), () => ''])();
const queryText = () => one(['', '', '?', '??', '???', '&']) + some(6, parameter).join('&');

const values = [
  '1', '', '"x"', '"x y"', '"', '""', '"a%22b"', '%20', '%zz', '%', '%C3%A9', '%FF', '%c3', 'a=b', "'q'", '%22x%22',
  '"un', 'x, y', ' padded ',
];
const crumbs = ['a', 'b', 'A', 'lang', 'lang ', ' lang', 'x-y', '10', '2', '%61', '__proto__x'];
const cookie = () =>
  one([
    () => `${one(crumbs)}=${one(values)}`,
    () => `${one(crumbs)}=${one(values)}`,
    () => one(crumbs),
    () => `=${one(values)}`,
    () => ' ',
  ])();
const cookieField = () => some(5, cookie).join(one([';', '; ', ' ; ']));

// Bytes that are not UTF-8 have no key here.
const skipped = (query) => [...new URLSearchParams(query)].flat().some((text) => text.includes('\ufffd'));

for (let made = 0; made < 4000; ) {
  const pattern = one(patterns);
  const request = { path: pathOf(pattern), query: queryText(), fields: some(2, cookieField) };
  if (skipped(request.query)) continue;
  console.log(JSON.stringify({ ...request, pk: pkOf(pattern, request) }));
  ++made;
}
