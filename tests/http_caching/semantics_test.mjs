// Compares the gateway's rules of freshness with those of npm's http-cache-semantics, on made-up responses and
// requests:
//   node semantics_test.mjs --judge build/release/tests/http_caching/freshness_judge [--cases 4000] [--seed 1] [--show
//   NUMBER]
// Both are asked whether a response may be stored, how long it is fresh, how old it is at a later time, whether it may
// then answer another request, and whether it may after an error of the origin. Where they differ on purpose a
// correction below says how; with all of them applied, both must come to the same in every case. docs/http_caching.md
// has a row for each correction: who is right, and by what. A difference that no correction explains fails, and so does
// a correction that explains none.
import { spawnSync } from 'child_process'
import { createRequire } from 'module'
import fs from 'fs'
import path from 'path'
import { fileURLToPath } from 'url'

process.env.TZ = 'UTC' // asctime's dates name no zone, and the package reads them in ours
const here = path.dirname(fileURLToPath(import.meta.url))
const CachePolicy = createRequire(import.meta.url)('../servers/node_modules/http-cache-semantics')

const BASE = 1_700_000_000 // seconds; what else is drawn is close to it
const MOST_SECONDS = 2 ** 31
const ENOUGH = 50 // cases of a kind; more are not looked for

// ---- Cases

function randomNumbers (seed) { // mulberry32
  let state = seed >>> 0
  return below => {
    state = (state + 0x6D2B79F5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

// Values of request fields, and what they mean.
const VARYING = {
  'accept-language': [['de', 'de'], ['de,en', 'de en'], ['de, en', 'de en'], ['de, en;q=0.5', 'de half en'],
    ['de,en;q=0.50', 'de half en']],
  'accept-encoding': [['gzip', 'gzip'], ['gzip;q=1.0', 'gzip'], ['x-gzip, deflate', 'gzip'], ['br, gzip', 'br gzip'],
    ['identity', 'none']],
  'x-variant': [['a', 'a'], ['a, b', 'a b'], ['a,b', 'a b'], ['A', 'A']],
  'user-agent': [['curl', 'curl'], ['a, b', 'a, b'], ['a,b', 'a,b']]
}

function drawn (number) {
  const random = randomNumbers(number * 2654435761 + 1)
  const one = list => list[random(list.length)]
  const some = (chance, make) => random(100) < chance ? make() : undefined
  const seconds = () => one([0, 0, 1, 5, 10, 10, 30, 60, 60, 100, 120, 3600])
  const odd = () => one(['soon', '-5', '1.5', '10s', '', '99999999999', '"30"', ' 10'])
  const value = () => random(10) === 0 ? odd() : String(seconds())
  const spelt = name => random(12) === 0 ? name.toUpperCase()
    : random(12) === 0 ? name[0].toUpperCase() + name.slice(1) : name
  const joined = directives => directives.map(spelt).join(one([', ', ',', ' , ']))

  const responseDirectives = () => {
    const list = []
    const add = (chance, make) => { if (random(100) < chance) list.push(make()) }
    add(60, () => 'max-age=' + value())
    add(15, () => 's-maxage=' + value())
    add(6, () => 'max-age=' + value()) // twice
    add(40, () => 'stale-while-revalidate=' + value())
    add(20, () => 'stale-if-error=' + value())
    add(4, () => 'stale-while-revalidate')
    add(12, () => 'must-revalidate')
    add(8, () => 'proxy-revalidate')
    add(12, () => one(['public', 'public', 'public=x']))
    add(5, () => one(['private', 'private="x-a, x-b"', 'private=x-a', 'private="x-a"']))
    add(9, () => one(['no-cache', 'no-cache', 'no-cache="x-a, x-b"', 'no-cache=x-a']))
    add(4, () => 'no-store')
    add(6, () => one(['must-understand', 'must-understand, no-store']))
    add(5, () => 'immutable')
    add(3, () => 'no-transform')
    add(2, () => 'max-age')
    for (let i = list.length - 1; i > 0; i--) { // in any order
      const j = random(i + 1)
      ;[list[i], list[j]] = [list[j], list[i]]
    }
    return joined(list)
  }
  const requestDirectives = () => joined([some(35, () => 'max-age=' + value()),
    some(40, () => one(['max-stale', 'max-stale=' + value(), 'max-stale=' + value()])),
    some(25, () => 'min-fresh=' + value()), some(6, () => 'no-cache'), some(3, () => 'only-if-cached'),
    some(3, () => 'no-transform')].filter(Boolean))
  const date = time => {
    const at = new Date(time * 1000)
    const usual = at.toUTCString()
    const [, day, month, year, clock] = usual.split(' ')
    const weekday = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][at.getUTCDay()]
    return one([usual, usual, usual, usual, usual, usual, `${weekday}, ${day}-${month}-${year.slice(2)} ${clock} GMT`,
      `${usual.slice(0, 3)} ${month} ${day.replace(/^0/, ' ')} ${clock} ${year}`,
      usual.replace('GMT', '+0000'), at.toISOString(),
      usual.replace(/^.../, usual.startsWith('Mon') ? 'Tue' : 'Mon'), usual.toLowerCase(), '0', 'never'])
  }
  const varying = headers => {
    for (const [name, values] of Object.entries(VARYING)) {
      const drawnValue = some(60, () => one(values)[0])
      if (drawnValue !== undefined) headers[name] = drawnValue
    }
    return headers
  }
  const put = (headers, name, chance, make) => {
    const text = some(chance, make)
    if (text !== undefined && text !== '') headers[name] = text
  }

  const requestedAt = BASE
  const receivedAt = requestedAt + one([0, 0, 0, 1, 3])
  const made = receivedAt - one([0, 0, 0, 1, 2, 10, 60, -5])
  const request = varying({ host: 'example.com' })
  put(request, 'cache-control', 5, () => one(['no-store', 'No-Store', 'max-age=0']))
  put(request, 'authorization', 8, () => 'Basic eDp5')
  const response = {}
  put(response, 'date', 75, () => date(made))
  put(response, 'cache-control', 85, responseDirectives)
  put(response, 'cdn-cache-control', 8, () => one(['max-age=20', 'max-age=5, must-revalidate', 'no-store', 'no-cache',
    'max-age=10;x, stale-while-revalidate=30', 'MAX-AGE=5', 'max-age=1.5', 's-maxage=7, max-age=3', 'private']))
  put(response, 'expires', 35, () => date(made + one([0, 5, 30, 60, 600, -10])))
  put(response, 'age', 30, () =>
    one(['0', '1', '5', '5', '30', '30', '100', '5, 6', '-1', '1.5', 'x', '5;x', '99999999999']))
  put(response, 'last-modified', 30, () => date(made - 1000))
  put(response, 'etag', 30, () => '"a"')
  put(response, 'pragma', 10, () => 'no-cache')
  put(response, 'set-cookie', 4, () => 'a=b')
  put(response, 'vary', 30, () => one(['Accept-Language', 'accept-encoding', 'X-Variant', 'accept-language, user-agent',
    'Accept-Encoding,X-Variant', '*', 'x-variant, *', 'X-Absent']))
  const asked = random(2) === 0 ? { ...request } : varying({ host: 'example.com' })
  delete asked['cache-control']
  put(asked, 'cache-control', 45, requestDirectives)
  put(asked, 'pragma', 6, () => one(['no-cache', 'no-cache', 'x-no-cache', 'No-Cache']))
  return {
    number,
    method: one([...Array(20).fill('GET'), 'HEAD', 'POST']),
    status: one([...Array(30).fill(200), 203, 204, 206, 299, 300, 301, 302, 303, 304, 307, 308,
      400, 404, 404, 405, 410, 414, 451, 500, 501, 503]),
    requestedAt,
    receivedAt,
    now: receivedAt + one([0, 0, 1, 4, 5, 6, 9, 10, 11, 25, 29, 30, 31, 59, 60, 61, 100, 119, 120, 200, 4000]),
    request,
    response,
    asked
  }
}

// ---- Our side

function ours (judge, cases) {
  const fields = headers => Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join('\x1f')
  const lines = cases.map(one => [one.method, one.status, one.requestedAt, one.receivedAt, one.now,
    fields(one.request), fields(one.response), fields(one.asked)].join('\t'))
  const done = spawnSync(judge, { input: lines.join('\n') + '\n', encoding: 'utf8', maxBuffer: 1 << 30 })
  if (done.status !== 0) {
    throw new Error(`${judge} ended with ${done.status ?? done.error ?? done.signal}: ${done.stderr}`)
  }
  return done.stdout.trimEnd().split('\n').map(line => {
    const [stored, lifetime, age, use, afterError, why] = line.split('\t')
    if (why === undefined) throw new Error('the judge says: ' + line)
    return { ...verdict(stored === '1', Number(lifetime), Number(age), use, afterError === '1'), why }
  })
}

// A response that is not stored has nothing else to compare.
function verdict (stored, lifetime, age, use, afterError) {
  return stored ? { stored, lifetime, age, use, afterError } : { stored }
}

// ---- Their side

class Policy extends CachePolicy {
  now () { return Policy.time * 1000 }
}

function theirs (one, corrections) {
  let changed = { ...one, request: { ...one.request }, response: { ...one.response }, asked: { ...one.asked } }
  for (const correction of corrections) changed = correction.rewrite?.(changed) ?? changed
  Policy.time = changed.receivedAt
  const policy = new Policy({ method: changed.method, headers: changed.request },
    { status: changed.status, headers: changed.response }, { shared: true, cacheHeuristic: 0 })
  Policy.time = changed.now
  const evaluated = policy.evaluateRequest({ headers: changed.asked, method: changed.method })
  const use = !evaluated.response ? 'no' : evaluated.revalidation ? 'while-revalidating' : 'fresh'
  let said = {
    stored: policy.storable(), lifetime: policy.maxAge(), age: policy.age(), use, afterError: policy._useStaleIfError()
  }
  for (const correction of corrections) said = correction.judge?.(changed, said, one) ?? said
  return verdict(said.stored, said.lifetime, said.age, said.use, said.afterError)
}

// ---- Corrections: what the package is to be told, or how its verdict is to be read

// The directives of a value as the grammar has them: [name, argument], the argument undefined where there is none.
function directives (text) {
  return (text ?? '').match(/(?:[^,"]|"(?:[^"\\]|\\.)*"|")+/g)?.map(part => part.trim()).filter(Boolean).map(part => {
    const equals = part.indexOf('=')
    return equals < 0 ? [part, undefined] : [part.slice(0, equals), part.slice(equals + 1)]
  }) ?? []
}
const textOf = list => list.map(([name, argument]) => argument === undefined ? name : `${name}=${argument}`).join(', ')
const has = (text, name) => directives(text).some(([other]) => other.toLowerCase() === name)
const argumentOf = (text, name) => directives(text).find(([other]) => other.toLowerCase() === name)?.[1]
const secondsIn = argument => parseInt((argument ?? '').replaceAll('"', ''), 10)

// A correction of every Cache-Control there is.
function ofDirectives (change) {
  return one => {
    for (const headers of [one.request, one.response, one.asked]) {
      if (headers['cache-control'] === undefined) continue
      const text = textOf(change(directives(headers['cache-control'])))
      if (text) headers['cache-control'] = text
      else headers['cache-control'] = 'x' // It is there, and says nothing.
    }
    return one
  }
}

const LIMITS = ['max-age', 's-maxage']
const CONCESSIONS = ['min-fresh', 'max-stale', 'stale-while-revalidate', 'stale-if-error']
const NUMBERS = [...LIMITS, ...CONCESSIONS]

function isHttpDate (text) {
  const time = Date.parse(text)
  if (!Number.isFinite(time)) return false
  const at = new Date(time)
  const usual = at.toUTCString()
  const [weekday, day, month, year, clock] = usual.replace(',', '').split(' ')
  const long = { Sun: 'Sunday', Mon: 'Monday', Tue: 'Tuesday', Wed: 'Wednesday', Thu: 'Thursday', Fri: 'Friday',
    Sat: 'Saturday' }[weekday]
  return [usual, `${long}, ${day}-${month}-${year.slice(2)} ${clock} GMT`,
    `${weekday} ${month} ${day.replace(/^0/, ' ')} ${clock} ${year}`]
    .some(form => form.toLowerCase() === text.toLowerCase())
}

const isStale = said => said.lifetime <= said.age
const UNUSED = { use: 'no', afterError: false }

const CORRECTIONS = [
  {
    kind: 'directives in any case',
    rewrite: ofDirectives(list => list.map(([name, argument]) => [name.toLowerCase(), argument]))
  },
  {
    kind: 'targeted field',
    rewrite: one => {
      const list = directives(one.response['cdn-cache-control'])
      // A structured dictionary: keys in lower case, or the whole of it is nothing.
      if (list.length === 0 || list.some(([name]) => !/^[a-z*][a-z0-9_.*-]*$/.test(name))) return one
      one.response['cache-control'] = textOf(list.map(([name, argument]) => [name, argument?.replace(/;.*$/, '')]))
      delete one.response.expires
      return one
    }
  },
  {
    kind: 'first of several',
    rewrite: ofDirectives(list => list.filter(([name], i) => !NUMBERS.includes(name.toLowerCase()) ||
      list.findIndex(([other]) => other.toLowerCase() === name.toLowerCase()) === i))
  },
  {
    kind: 'no such number',
    rewrite: ofDirectives(list => list.map(([name, argument]) => {
      if (argument === undefined || !NUMBERS.includes(name) || /^(\d+|"\d+")$/.test(argument)) return [name, argument]
      return LIMITS.includes(name) ? [name, '0'] : ['x-dropped', undefined]
    }))
  },
  {
    kind: 'largest number',
    rewrite: one => {
      ofDirectives(list => list.map(([name, argument]) => {
        if (!NUMBERS.includes(name) || !(Number(argument) > MOST_SECONDS)) return [name, argument]
        return name === 'max-stale' ? [name, undefined] : [name, String(MOST_SECONDS)] // Beyond it, any age will do.
      }))(one)
      if (Number(one.response.age) > MOST_SECONDS) one.response.age = String(MOST_SECONDS)
      return one
    }
  },
  {
    kind: 'qualified directives',
    rewrite: one => {
      ofDirectives(list => list.filter(([name, argument]) =>
        argument === undefined || !['no-cache', 'private'].includes(name)))({ ...one, request: {}, asked: {} })
      return one
    }
  },
  {
    kind: 'permissions with arguments',
    rewrite: ofDirectives(list => list.filter(([name, argument]) => name !== 'public' || argument === undefined))
  },
  {
    kind: 'must-understand',
    rewrite: one => {
      if (has(one.response['cache-control'], 'must-understand')) {
        ofDirectives(list => list.filter(([name]) => name !== 'no-store'))({ ...one, request: {}, asked: {} })
      }
      return one
    }
  },
  {
    kind: 'immutable',
    rewrite: ofDirectives(list => list.filter(([name]) => name !== 'immutable'))
  },
  {
    kind: 'stale-while-revalidate without a number',
    rewrite: ofDirectives(list => list.map(([name, argument]) =>
      name === 'stale-while-revalidate' && argument === undefined ? [name, '31536000'] : [name, argument]))
  },
  {
    kind: 'Pragma of a response',
    rewrite: one => { delete one.response.pragma }
  },
  {
    kind: 'Pragma of a request',
    rewrite: one => {
      if (one.asked['cache-control'] !== undefined || one.asked.pragma?.toLowerCase() !== 'no-cache') {
        delete one.asked.pragma
      } else {
        one.asked.pragma = 'no-cache'
      }
    }
  },
  {
    kind: 'dates',
    rewrite: one => {
      for (const name of ['date', 'expires', 'last-modified']) {
        if (one.response[name] === undefined || isHttpDate(one.response[name])) continue
        if (name === 'expires') one.response.expires = 'never'
        else delete one.response[name]
      }
    }
  },
  {
    kind: 'Age that is no number',
    rewrite: one => { if (!/^\d+(,|$)/.test(one.response.age ?? '0')) delete one.response.age }
  },
  {
    kind: 'age by Date and delay',
    rewrite: one => {
      const date = Date.parse(one.response.date ?? '') / 1000
      const apparent = Number.isFinite(date) ? Math.max(0, one.receivedAt - date) : 0
      const value = parseInt(one.response.age ?? '0', 10)
      const delayed = (Number.isFinite(value) ? value : 0) + one.receivedAt - one.requestedAt
      one.response.age = String(Math.max(apparent, delayed))
    }
  },
  {
    kind: 'methods',
    rewrite: one => { if (one.method !== 'GET') one.response['cache-control'] = 'no-store' }
  },
  {
    kind: 'statuses',
    judge: (one, said) => [405, 414, 501].includes(one.status) ? { ...said, stored: false } : said,
    rewrite: one => {
      // Final and not known to either: it may be stored as long as the origin says how long, unless it says
      // must-understand.
      const lasting = one.response.expires !== undefined || has(one.response['cache-control'], 'public') ||
        LIMITS.some(name => has(one.response['cache-control'], name))
      if (one.status === 299 && lasting && !has(one.response['cache-control'], 'must-understand')) one.status = 200
    }
  },
  {
    kind: 'Set-Cookie',
    judge: (one, said) => one.response['set-cookie'] ? { ...said, stored: false } : said
  },
  {
    kind: 'Vary: *',
    judge: (one, said) => /\*/.test(one.response.vary ?? '') ? { ...said, stored: false } : said
  },
  {
    kind: 'the same in other words',
    rewrite: one => {
      for (const headers of [one.request, one.asked]) {
        for (const [name, values] of Object.entries(VARYING)) {
          const meant = values.find(([value]) => value === headers[name])
          if (meant) headers[name] = meant[1]
        }
      }
    }
  },
  {
    kind: 'up to and including',
    judge: (one, said) => {
      const over = said.age - said.lifetime
      const control = one.response['cache-control']
      const seconds = (text, name) => secondsIn(argumentOf(text, name))
      const result = { ...said }
      if (over > 0 && over === seconds(control, 'stale-if-error')) result.afterError = true
      if (said.use === 'fresh' || over < 0) return result
      const reached = (over > 0 && over === seconds(control, 'stale-while-revalidate')) ||
        over === seconds(one.asked['cache-control'], 'max-stale')
      return reached ? { ...result, use: usedWith(one, over) } : result
    }
  },
  {
    kind: 'must-revalidate while fresh',
    rewrite: one => {
      if (!has(one.response['cache-control'], 'must-revalidate')) return
      delete one.request.authorization // must-revalidate allows it.
      ofDirectives(list => list.filter(([name]) => name !== 'must-revalidate'))({ ...one, request: {}, asked: {} })
      one.mustRevalidate = true
    },
    judge: (one, said) => one.mustRevalidate && isStale(said) ? { ...said, ...UNUSED } : said
  },
  {
    kind: 'proxy-revalidate while fresh',
    rewrite: one => {
      if (!has(one.response['cache-control'], 'proxy-revalidate')) return
      ofDirectives(list => list.filter(([name]) => name !== 'proxy-revalidate'))({ ...one, request: {}, asked: {} })
      one.proxyRevalidate = true
    },
    judge: (one, said) => one.proxyRevalidate && isStale(said) ? { ...said, ...UNUSED } : said
  },
  {
    kind: 'max-age beside max-stale',
    rewrite: one => {
      const control = one.asked['cache-control']
      if (!has(control, 'max-age') || !has(control, 'max-stale')) return
      const more = argumentOf(control, 'max-stale')
      ofDirectives(list => list.filter(([name]) => name !== 'max-age' || more !== undefined)
        .map(([name, argument]) => name === 'max-age'
          ? [name, String((secondsIn(argument) || 0) + secondsIn(more))]
          : [name, argument]))({ ...one, request: {}, response: {} })
    }
  },
  {
    kind: 'max-age wants nothing stale',
    judge: (one, said) => said.use === 'while-revalidating' &&
      has(one.asked['cache-control'], 'max-age') && !has(one.asked['cache-control'], 'max-stale')
      ? { ...said, use: 'no' }
      : said
  },
  {
    kind: 'max-stale is a limit',
    judge: (one, said) => {
      const most = argumentOf(one.asked['cache-control'], 'max-stale')
      return said.use === 'while-revalidating' && most !== undefined && said.age - said.lifetime > secondsIn(most)
        ? { ...said, use: 'no' }
        : said
    }
  },
  {
    kind: 'no-cache is not served stale',
    judge: (one, said) => has(one.response['cache-control'], 'no-cache') ? { ...said, ...UNUSED } : said
  },
  {
    kind: 's-maxage forbids what is stale',
    judge: (one, said) => {
      const control = one.response['cache-control']
      const allowed = ['stale-while-revalidate', 'stale-if-error'].some(name => argumentOf(control, name) !== undefined)
      return has(control, 's-maxage') && !allowed && isStale(said) ? { ...said, ...UNUSED } : said
    }
  }
]

// The use of a response that is `over` seconds stale, were each limit that it has just reached a second longer.
function usedWith (one, over) {
  const longer = { ...one, response: { ...one.response }, asked: { ...one.asked } }
  for (const headers of [longer.response, longer.asked]) {
    headers['cache-control'] = textOf(directives(headers['cache-control']).map(([name, argument]) =>
      (name === 'max-stale' || (name === 'stale-while-revalidate' && over > 0)) && secondsIn(argument) === over
        ? [name, String(over + 1)]
        : [name, argument]))
  }
  return theirs(longer, []).use ?? 'no'
}

// ---- The comparison

function main () {
  const option = (name, otherwise) => {
    const at = process.argv.indexOf('--' + name)
    return at < 0 ? otherwise : process.argv[at + 1]
  }
  const judge = option('judge')
  const count = Number(option('cases', 4000))
  const seed = Number(option('seed', 1))
  const shown = option('show')
  const numbers = shown !== undefined ? [Number(shown)] : Array.from({ length: count }, (_, i) => seed * 1_000_003 + i)
  const seen = new Map(CORRECTIONS.map(({ kind }) => [kind, 0]))
  let unexplained = 0
  let differing = 0
  for (let begin = 0; begin < numbers.length; begin += 20000) {
    const cases = numbers.slice(begin, begin + 20000).map(drawn)
    const judged = ours(judge, cases)
    cases.forEach((one, i) => {
      const { why, ...our } = judged[i]
      const same = said => JSON.stringify(said) === JSON.stringify(our)
      const plain = theirs(one, [])
      const corrected = theirs(one, CORRECTIONS)
      if (shown !== undefined) console.log(JSON.stringify({ one, our, why, plain, corrected }, null, 2))
      if (!same(corrected)) {
        if (++unexplained <= 5) {
          console.log(`not ok case ${one.number}: ours ${JSON.stringify(our)} (${why}), ` +
            `theirs ${JSON.stringify(plain)}, with all corrections ${JSON.stringify(corrected)}`)
          console.log('  ' + JSON.stringify(one))
        }
        return
      }
      if (same(plain)) return
      differing++
      for (const correction of CORRECTIONS) {
        if (seen.get(correction.kind) < ENOUGH &&
            !same(theirs(one, CORRECTIONS.filter(other => other !== correction)))) {
          seen.set(correction.kind, seen.get(correction.kind) + 1)
        }
      }
    })
  }
  if (shown !== undefined) return
  console.log(`${unexplained ? 'not ok' : 'ok'} ${numbers.length} cases: ` +
    `${numbers.length - differing - unexplained} alike, ` +
    `${differing} differ for reasons that are known, ${unexplained} for others`)
  const document = fs.readFileSync(path.join(here, '../../docs/http_caching.md'), 'utf8')
  const documented = [...document.matchAll(/^\| ([^|]+?) \|/gm)].map(match => match[1])
  for (const [kind, times] of seen) {
    const told = documented.includes(kind)
    console.log(`${times && told ? 'ok' : 'not ok'} ${kind}: ${times < ENOUGH ? times : ENOUGH + ' or more'} times` +
      (told ? '' : ', and docs/http_caching.md does not tell of it'))
  }
  process.exitCode = unexplained || [...seen].some(([kind, times]) => !times || !documented.includes(kind)) ? 1 : 0
}

main()
