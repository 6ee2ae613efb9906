// Odd keys and what JavaScript makes of them, one JSON object per line; facetheory_key_test.cc compares. What is
// tested is the platform's own: encodeURIComponent, localeCompare, Array.prototype.sort and SHA-256.
//
// Versions of Node agree on all of these keys but one kind. V8 before 11 (Node 18 and older) says that "" comes before
// any other string without asking its collator; later ones ask, as ECMA-402 has it, and hear that "" is equal to a
// string of characters that collation ignores, such as U+200B. So each line has the key by the rule (`pk`: the collator
// is asked always, here with a letter ahead of both strings, which changes no order), the key that this Node makes
// (`pk_here`), and whether some list has both kinds of name, so that the two may differ (`engines_differ`); then also
// what is known of both.
//
// Characters that newer versions of Unicode add or that ICU has moved (between ICU 71 and 78: U+0F82, U+0F83, U+20A7,
// U+20A8, U+FDFC) are in none of the lists: each Node sorts those by the tables that it was built with.
import { createHash } from 'node:crypto';

// Of the keys of such lists, in the order in which they stand below: the first 16 hex digits of SHA-256 of what Node
// 18.20 (V8 10.2, ICU 74) makes, and of what Node 20.20 (V8 11.3, ICU 78) makes. Whichever is installed here, both are
// known.
const madeByEngines = [
  ['77c7c061cf9e2358', 'ebae2fa656956c08'], ['14502183be20ca89', 'fa00e82beebf3943'],
  ['0fac3bd184f91772', '9b2826d52ebf0968'], ['226730b2e78be45e', '74ea4d83dec9c13a'],
  ['289423731fa2d062', '0a4de401393d65be'], ['5a8063854ccda764', '0783aa6b588e4c49'],
  ['a4358ce0796dc4b8', 'a4358ce0796dc4b8'], ['8a1b75a08bb485dc', '8a1b75a08bb485dc'],
  ['f202645037cf9bfe', 'f202645037cf9bfe'], ['a6e5768f58952704', '96cf3679aa06067c'],
  ['221aa94e8310c891', '221aa94e8310c891'], ['9a379e701d28d6e5', 'a556ce8952beb96d'],
  ['f7e209cb35d5b6e5', 'f7e209cb35d5b6e5'], ['f493235ff6226dcf', 'a9421e7812b03074'],
  ['3412eedc3949ee4d', 'a54b388ebb5b698a'], ['59b2e3f83495498e', '59b2e3f83495498e'],
  ['fe133f0d2ac13a45', 'fe133f0d2ac13a45'], ['1b5da1638ddaa078', '1b5da1638ddaa078'],
  ['328f6e3d39e26e34', '328f6e3d39e26e34'], ['e21225027c48796f', '54e724dabbdafe34'],
  ['bf2f7fa22683109b', '7f923c573c76e538'],
];

const here = (a, b) => a[0].localeCompare(b[0]);
const byRule = (a, b) => (a[0] && b[0] ? here(a, b) : `x${a[0]}`.localeCompare(`x${b[0]}`));
const encoded = (pairs) => pairs.map((pair) => pair.map(encodeURIComponent).join('='));
const lines = (pairs) => pairs.map((pair) => pair.join('=')).join('\n');
const digest = (pairs) => createHash('sha256').update(lines(pairs)).digest('hex').slice(0, 24);

// As FaceTheory has them: in an object, whose members are listed in an order of its own.
function members(pairs) {
  const object = Object.create(null);
  for (const [name, value] of pairs) (object[name] ??= []).push(value);
  return Object.entries(object);
}

function pkOf({ tenant, route, params, query, auth, cookies }, order) {
  const sorted = (pairs) => members(pairs).sort(order).flatMap(([name, list]) => list.map((value) => [name, value]));
  const variants = Object.entries({ auth, cookies }).filter(([, pairs]) => pairs.length > 0);
  const variant = variants.map(([name, pairs]) => `${name}=${digest(sorted(pairs))}`).join('&');
  const parameters = [...encoded(sorted(params)), ...encoded(sorted(query))].join('&');
  return `CACHE#${tenant}::${route}?${parameters}${variant && '#'}${variant}`;
}

const isIgnored = ([name]) => name !== '' && 'x'.localeCompare(`x${name}`) === 0;
const enginesDiffer = (pairs) => pairs.some(([name]) => name === '') && pairs.some(isIgnored);

function emit(key) {
  const full = { tenant: 'default', route: '/', params: [], query: [], auth: [], cookies: [], ...key };
  const engines_differ = [full.params, full.query, full.auth, full.cookies].some(enginesDiffer);
  const key_made = { pk: pkOf(full, byRule), pk_here: pkOf(full, here), engines_differ };
  if (engines_differ) {
    const [before_v8_11, since_v8_11] = madeByEngines.shift();
    Object.assign(key_made, { before_v8_11, since_v8_11, v8_here: parseInt(process.versions.v8) });
  }
  console.log(JSON.stringify({ ...full, ...key_made }));
}

const pairs = (...names) => names.map((name, i) => [name, String(i)]);
const values = (...list) => list.map((value) => ['v', value]);

// Each of these is in an order that neither bytes nor letters without case would give.
const lists = [
  [], ['a'], ['b', 'a'], ['B', 'a'], ['a', 'B', 'b', 'A'], ['Z', 'a', '_', '-', '.'], ['é', 'f', 'e', 'E', 'É'],
  ['z', 'ä', 'a', 'Ä', 'å', 'ø', 'o'], ['ss', 'ß', 'st', 'ẞ'], ['co-op', 'coop', 'co op', 'CO-OP', 'co_op'],
  ['10', '9', '1', '01', '1.5', '٣', '三'], ['résumé', 'resume', 'Resume', 'Résumé', 'resumé'],
  ['e\u0301', 'é', 'e', 'ez'], ['\u212b', 'Å', 'A\u030a', 'å'], ['a\u0323\u0307', 'a\u0307\u0323', 'ạ\u0307'],
  ['日本', '中国', '한국', 'にほん', 'ニホン'], ['ｶ', 'カ', 'か', 'が', 'ガ'], ['😀', '🎉', '👩‍👩‍👧', '☃', '☃️', 'a'],
  ['\u{10000}', '\uffee', '\ufb01', 'fi', 'ﬁ'], ['я', 'Я', 'а', 'ё', 'е', 'z'], ['ω', 'Ω', 'α', 'ά', 'Ά', 'z'],
  ['א', 'ب', 'ا', 'ת', 'z'], ['', 'a', ' '], [' a', 'a ', 'a', 'a b', 'ab'], ['#', '?', '&', '=', '%', '+', '/'],
  ["'", '"', '(', ')', '*', '!', '~', '`', '^', '$', '@', '{', '}', '|', '\\', '<', '>', ',', ';', ':', '[', ']'],
  ['a\u0000', 'a', '\u0001a', 'a\tb', 'a\nb', 'ab', '\u007f'], ['a\u00adb', 'ab', 'a\u200bb', 'a\u200db', '\ufeffab'],
  ['ch', 'cz', 'c', 'd', 'll', 'lz'], ['Æ', 'AE', 'ae', 'af', 'æ', 'ad'],
  ['ĳ', 'ij', 'IJ', 'ik'], ['ı', 'i', 'I', 'İ', 'j'],
  ['½', '1', '²', '2', '①', 'Ⅳ', 'IV'], ['€', '$', '¥', '£', '¢', '1'], ['aaa', 'aa', 'aA', 'Aa', 'AA', 'a'],
  ['\u200b', '', 'a', '\u00ad'],
  ['1\u200b', '1', 'b\u200b', 'b', '1\u200b', 'b\u200b', '01\u200b', '01', '4294967295\u200b', '4294967295'],
  ['x-forwarded-for', 'authorization', 'X-Auth', 'cookie'], ['ก', 'เก', 'แก', 'ข'], ['%41', 'A', '%C3%A9', 'é'],
];
lists.forEach((list, i) => {
  emit({ query: pairs(...list) });
  emit({ tenant: 'Ünïcode tenant', route: '/ä/{名前}', params: values(...list), query: pairs(...[...list].reverse()) });
  if (!list.some((text) => /[=\n]/.test(text))) {
    emit({ tenant: `t${i}`, auth: pairs(...list), cookies: values(...list) });
  }
});
emit({ tenant: 'a:b::c', route: '/::/x', params: [['slug', '::/']] });
emit({ tenant: 'a::', route: '/' });
emit({ auth: [['authorization', 'Bearer a\u0000Bearer b']] });
emit({ cookies: [['session', 'x=y; z']] });

// Strings put together at random from the characters above; the seed is fixed.
let state = 42;
const below = (n) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * n);
};
const characters = [...new Set(lists.flat().flatMap((text) => [...text]))].filter((c) => !/[=\n]/.test(c));
const text = () => Array.from({ length: below(5) }, () => characters[below(characters.length)]).join('');
const some = () => Array.from({ length: below(7) }, () => [text(), text()]);
for (let i = 0; i < 300; ++i) emit({ params: some(), query: some(), auth: some(), cookies: some() });
