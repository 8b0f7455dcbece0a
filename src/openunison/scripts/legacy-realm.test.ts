import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { programText } from '#protocols/plugin/plugin-run.ts'
import { legacyRealm } from './legacy-realm.ts'

const program = (name: string) => programText(new URL(`../../protocols/plugin/${name}`, import.meta.url))

/** Names the way to a function that makes code outside of the realms; otherwise empty. */
function wayOut(start: unknown, seen = new Set<unknown>()): string {
  const queue: [unknown, string][] = [[start, 'it']]
  for (const [item, path] of queue) {
    if ((typeof item !== 'object' && typeof item !== 'function') || item === null || seen.has(item)) continue
    seen.add(item)
    try {
      const make = Object(item).constructor
      if (typeof item === 'function' && typeof make('return process')() === 'object') return path
    } catch {}
    try {
      queue.push([Object.getPrototypeOf(item), `${path}.__proto__`])
      for (const name of Reflect.ownKeys(item)) {
        const { value, get, set } = Object.getOwnPropertyDescriptor(item, name) ?? {}
        for (const next of [value, get, set]) queue.push([next, `${path}.${String(name)}`])
      }
    } catch {}
  }
  return ''
}

/** Each finds an object and passes it on: at once, or later, when Node.js itself calls the script. */
const ways: Readonly<Record<string, string>> = {
  'the global object': 'found(globalThis)',
  'the receiver': 'found(this)',
  'the types of Java': 'found(java); found(com); found(Java.type("java.util.HashMap")); found(state)',
  'the error of a Java type': 'try { Java.type("java.util.UUID").fromString(1) } catch (e) { found(e) }',
  'the error of the bridge':
    'try { java.net.http.HttpClient.newHttpClient().send(java.net.http.HttpRequest.newBuilder(java.net.URI.create("http://127.0.0.1:1")).build(), java.net.http.HttpResponse.BodyHandlers.ofString()) } catch (e) { found(e) }',
  'stack frames':
    'Error.prepareStackTrace = (e, frames) => { found(frames); for (const f of frames) { found(f.getFunction()); found(f.getThis()) } }; new Error("a").stack; try { null.x } catch (e) { e.stack }',
  'a full stack':
    'let got; const dive = (n) => { if (n > 0) dive(n - 1); else try { java.util.UUID.randomUUID() } catch (e) { got = e } }; let most = 0; const measure = () => { most++; measure() }; try { measure() } catch (e) { found(e) } for (let n = most >> 1; n < most * 2; n += 100) { try { dive(n) } catch (e) { got = e } } found(got)',
  'the error of an import': 'import("node:fs").then(found, found)',
  'the error of an import of data': 'import("data:text/javascript,1").then(found, found)',
  'an await': '(async () => { try { await null; null.x } catch (e) { found(e) } })()',
  'constructors of promises':
    'class Own extends Promise { constructor(f) { super(f); found(f) } } Object.defineProperty(Promise, Symbol.species, { get: () => Own })',
  'an own inspection': 'Promise.reject({ [Symbol.for("nodejs.util.inspect.custom")]: (...all) => all.forEach(found) })',
  'an error with an own inspection':
    'Promise.reject(Object.assign(new Error("a"), { [Symbol.for("nodejs.util.inspect.custom")]: (...all) => all.forEach(found) }))',
  'a rejected proxy':
    'Promise.reject(new Proxy({}, new Proxy({}, { get: (_, trap) => (...all) => { all.forEach(found); return Reflect[trap](...all) } })))',
  'a rejected error':
    'Error.prepareStackTrace = (e, frames) => { found(frames); return "x" }; Promise.reject(new Error("b"))',
  WebAssembly: 'WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(found, found)',
  'a wait': 'Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10).value.then(found)',
  'Object.prototype.toJSON':
    'Object.prototype.toJSON = function (...all) { found(this); all.forEach(found) }; return { a: {} }',
  'getters of the answer':
    'return { get a() { found(this); return new Proxy([], { get: (o, k) => { found(k); return o[k] } }) } }',
  'a thrown proxy':
    'throw new Proxy(function () {}, { get: (o, k, r) => { found(r); return o[k] }, getPrototypeOf: () => Error.prototype })',
  'code of texts': '(0, eval)("found(globalThis)")',
  'a function of texts': 'found(Function("return this")())',
}

/** The process of scripts also refuses to make code of texts, which would hide a way out. Here it makes such code. */
test('no way leads from a script to an object of its process, also where code can be made of texts', () => {
  const cases = Object.entries(ways).map(([name, code]) => `${JSON.stringify(name)}: function () { ${code} }`)
  const text = `${wayOut}
    let way = 'start'
    const seen = new Set()
    const found = (item) => { const path = wayOut(item, seen); if (path !== '') java.lang.System.out.println(way + ': ' + path) }
    const ways = { ${cases.join(',\n')} }
    function work(name) { way = String(name); ways[way].call(this); return null }`
  const options = {
    realm: legacyRealm({}),
    httpProgram: program('http-thread.ts'),
    proxyVariables: {},
    text,
    url: 'file:///x.js',
  }
  const main = `${program('realm-process.ts')}
    ${wayOut}
    process.on('uncaughtException', () => {})
    const log = (_level, line) => console.log(line)
    const functions = await openRealm({ ...${JSON.stringify(options)}, functions: ['work'], settings: {}, timeoutMillis: 5000, log })
    for (const name of ${JSON.stringify(Object.keys(ways))}) {
      try { functions.get('work')(name) } catch {}
      await new Promise((done) => setTimeout(done, 20))
    }
    if (({}).toJSON !== undefined) console.log('Object.prototype has changed')
    console.log('control: ' + wayOut(functions))
    process.exit()`
  const flags = ['--permission', '--allow-worker', '--experimental-vm-modules', '--no-warnings']
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-'], {
    input: main,
    timeout: 20_000,
    encoding: 'utf8',
  })
  expect([stdout.trim().split('\n'), stderr]).toEqual([['control: it.__proto__.constructor'], ''])
}, 30_000)
