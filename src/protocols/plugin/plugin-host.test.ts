import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { PluginHost, type PluginHostOptions } from '#protocols/plugin/plugin-host.ts'
import { checkJavaScript } from './javascript-source.ts'

const opened: PluginHost[] = []
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'plugin-host-')))

afterEach(async () => {
  await Promise.all(opened.splice(0).map((host) => host.close()))
})

async function open(source: string, options: Partial<PluginHostOptions> = {}): Promise<PluginHost> {
  const host = await PluginHost.open({
    name: 'target "test"',
    code: checkJavaScript(source),
    url: pathToFileURL(join(folder, 'test.inline.js')).href,
    folders: [folder],
    functions: ['init', 'work', 'other', 'shutdown'],
    globals: { name: 'test' },
    timeoutMillis: 5000,
    memoryMegabytes: 32,
    log: silentLogger,
    start: () => [{ function: 'init', args: [{ url: ['x'] }] }],
    ...options,
  })
  opened.push(host)
  return host
}

const work = (host: PluginHost, ...args: JsonValue[]) =>
  host.call({ function: 'work', args }).then((answer) => answer.value)

describe('what counts as a function', () => {
  test.each([
    ['a declaration of a script', 'function work(a) { return a + 1 }'],
    ['an async declaration', 'async function work(a) { return a + 1 }'],
    ['a constant of a script', 'const work = (a) => a + 1'],
    ['an export', 'export function work(a) { return a + 1 }'],
    ['a declaration beside an import', "import os from 'node:os'\nfunction work(a) { return a + os.EOL.length }"],
    ['a renamed export', 'const f = (a) => a + 1\nexport { f as work }'],
    ['a default export', 'export default { work: (a) => a + 1 }'],
    ['loose code of older plug-ins', 'function work(a) { result = a + 01; return result }'],
    ['a text that ends in a comment', 'export const declaredFunctions = 1; function work(a) { return a + 1 } // end'],
  ])('%s', async (_, source) => {
    const host = await open(source)
    expect([...host.functions]).toEqual(['work'])
    expect(await work(host, 1)).toBe(2)
  })

  test('code may import files beside it, and builtins by import()', async () => {
    writeFileSync(join(folder, 'beside.js'), 'export const three = 3')
    const host = await open("import { three } from './beside.js'\nfunction work() { return three }")
    expect(await work(host)).toBe(3)
    const script = await open("async function work() { return (await import('./beside.js')).three }")
    expect(await work(script)).toBe(3)
  })
})

test('init runs before the first call, state lasts between calls and shutdown is called at the end', async () => {
  const lines: string[] = []
  const log: Logger = { ...silentLogger, info: (_, fields) => void lines.push(String(fields?.['text'])) }
  const host = await open(
    `function init(config) { state.put('url', config.url[0]); state.calls = 0 }
     function work() { state.calls++; return [state.get('url'), state.get('name'), state.calls] }
     function shutdown() { console.log('bye') }`,
    { log },
  )
  expect(await work(host)).toEqual(['x', 'test', 1])
  expect(await work(host)).toEqual(['x', 'test', 2])
  await host.close()
  expect(lines).toEqual(['bye'])
  await expect(work(host)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
})

test("code that can't be loaded or initialised is rejected with the reason", async () => {
  await expect(open('function init() { throw new Error("no database") }')).rejects.toThrow(/init: no database/)
  await expect(open('missing.call()')).rejects.toThrow(/loading: missing is not defined/)
  await expect(open('for (;;) {}', { loadMillis: 500 })).rejects.toMatchObject({ code: 'TARGET_TIMEOUT' })
  await expect(open("import './absent.js'")).rejects.toThrow(/absent.js/)
}, 20_000)

test('audit entries arrive in order and before the call settles, even if it fails or never ends', async () => {
  const host = await open(
    `function work(how, request) {
       request.audit({ action: 'add', attribute: 'a' })
       request.audit({ subject: 'group', action: 'delete', attribute: 'b', value: 'v' })
       if (how === 'throw') throw new Error('no')
       if (how === 'loop') for (;;) {}
       if (how === 'bad') request.audit({ action: 'eat', attribute: 'c' })
     }`,
    { timeoutMillis: 1000 },
  )
  for (const how of ['', 'throw', 'bad', 'loop']) {
    const entries: JsonValue[] = []
    const call = {
      function: 'work',
      args: [how, {}],
      request: 1,
      onAudit: (entry: JsonValue) => void entries.push(entry),
    }
    const failure = await host.call(call).then(
      () => '',
      (error: Error) => error.message,
    )
    expect(failure === '').toBe(how === '')
    expect(entries).toEqual([
      { action: 'add', attribute: 'a' },
      { subject: 'group', action: 'delete', attribute: 'b', value: 'v' },
    ])
  }
})

test("arguments return with the function's changes", async () => {
  const host = await open('function work(user, map) { user.groups.push("b"); delete map.x; map.y = 1; return true }')
  const { args } = await host.call({ function: 'work', args: [{ groups: ['a'] }, { x: 1 }], returnArguments: true })
  expect(args).toEqual([{ groups: ['a', 'b'] }, { y: 1 }])
})

describe('errors', () => {
  const thrown = (expression: string) =>
    open(`function work() { throw ${expression} }`).then((host) => work(host).catch((error: unknown) => error))

  test.each([
    ["Object.assign(new Error('gone'), { code: 'unreachable' })", 'TARGET_UNREACHABLE', /gone/],
    ["Object.assign(new Error('twice'), { status: 'conflict' })", 'CONFLICT', /twice/],
    ["Object.assign(new Error('odd'), { code: 'badRequest' })", 'BAD_REQUEST', /odd/],
    ["Object.assign(new Error('sys'), { code: 'ECONNREFUSED' })", 'TARGET_FAILED', /sys/],
    ["'a text'", 'TARGET_FAILED', /threw a text/],
    ['undefined', 'TARGET_FAILED', /threw undefined/],
    ["Symbol('s')", 'TARGET_FAILED', /Symbol\(s\)/],
    ['{ get code() { throw 1 }, toString() { throw 2 } }', 'TARGET_FAILED', /cannot be described/],
  ])('%s', async (expression, code, message) => {
    const error = await thrown(expression)
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
  })
})

describe('hostile code does not harm the gateway, and the next call works', () => {
  const guarded = (attack: string) => `function work(how) { if (how === 'attack') { ${attack} } return 'fine' }`

  test.each([
    ['an infinite loop', 'for (;;) {}', 'TARGET_TIMEOUT'],
    ['a promise that never settles', 'return new Promise(() => {})', 'TARGET_TIMEOUT'],
    ['an endless chain of promises', 'return (async () => { for (;;) await null })()', 'TARGET_TIMEOUT'],
    ['objects without end', 'const x = []; for (;;) x.push({ a: [1] })', 'TARGET_FAILED'],
    ['one array without end', 'const x = []; for (;;) x.push(1.5)', 'TARGET_FAILED'],
    ['an array that is too large', 'new Array(2e8).fill({})', 'TARGET_FAILED'],
    ['the end of the process', 'process.exit(0)', 'TARGET_FAILED'],
    ['an abort', 'process.abort()', 'TARGET_FAILED'],
    ['a signal', 'process.kill(process.ppid)', 'TARGET_FAILED'],
    ['recursion', '(function f() { f() })()', 'TARGET_FAILED'],
    [
      'an exception outside the call',
      "setTimeout(() => { throw new Error('late') }); return new Promise(() => {})",
      'TARGET_FAILED',
    ],
    ['an unhandled rejection', "Promise.reject(new Error('late')); return new Promise(() => {})", 'TARGET_FAILED'],
    ['an answer that is too large', "return 'x'.repeat(17e6)", 'TARGET_FAILED'],
    ['a cyclic answer', 'const x = {}; x.x = x; return x', 'TARGET_FAILED'],
    ['an answer that cannot be written', 'return 1n', 'TARGET_FAILED'],
    ['a getter that throws', 'return { get a() { throw new Error() } }', 'TARGET_FAILED'],
  ])(
    '%s',
    async (_, attack, code) => {
      const host = await open(guarded(attack), { timeoutMillis: code === 'TARGET_TIMEOUT' ? 500 : 60_000 })
      const error = await host.call({ function: 'work', args: ['attack'] }).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code })
      const stopped = error instanceof Error && /was stopped|process ended/.test(error.message)
      expect(error).toMatchObject({ retryAfter: stopped ? 5 : undefined })
      expect(await work(host)).toBe('fine')
    },
    90_000,
  )

  test.runIf(process.platform === 'linux')(
    'endless buffers',
    async () => {
      const host = await open(guarded('const x = []; for (;;) x.push(Buffer.alloc(4e6, 1))'), { timeoutMillis: 10_000 })
      await expect(host.call({ function: 'work', args: ['attack'] })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
      expect(await work(host)).toBe('fine')
    },
    20_000,
  )

  test('a result with reserved names is plain data', async () => {
    const host = await open('function work() { return JSON.parse(\'{"__proto__":{"admin":true},"constructor":1}\') }')
    const value = (await work(host)) as object
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Reflect.get({}, 'admin')).toBeUndefined()
  })

  test('calls in flight fail cleanly when another one is stopped or kills the process', async () => {
    const source = `function work() { return new Promise((done) => setTimeout(done, 2000)) }
                    function other(how) { if (how === 'exit') process.exit(1); if (how === 'loop') for (;;) {} return how }`
    const host = await open(source, { timeoutMillis: 700 })
    const waiting = [work(host), work(host)].map((call) => call.catch((error: { code: string }) => error.code))
    await expect(host.call({ function: 'other', args: ['exit'] })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(await Promise.all(waiting)).toEqual(['TARGET_FAILED', 'TARGET_FAILED'])

    const looping = host.call({ function: 'other', args: ['loop'] }).catch((error: { code: string }) => error.code)
    await new Promise((done) => setTimeout(done, 200))
    const late = work(host).catch((error: { code: string }) => error.code)
    expect(await looping).toBe('TARGET_TIMEOUT')
    expect(await late).toBe('TARGET_UNREACHABLE')
    const again = await Promise.all([1, 2, 3].map((n) => host.call({ function: 'other', args: [n] })))
    expect(again.map((answer) => answer.value)).toEqual([1, 2, 3])
  }, 20_000)

  test('a flood of log lines is cut off', async () => {
    let lines = 0
    const log: Logger = { ...silentLogger, info: () => void lines++, warn: () => void lines++ }
    const host = await open('function work() { for (let i = 0; i < 5000; i++) console.log(i) }', { log })
    await work(host)
    expect(lines).toBe(1001)
  })

  test('the environment, other files and other programs are not accessible', async () => {
    writeFileSync(join(folder, 'mine.txt'), 'mine')
    const attempts = `
      import { execSync } from 'node:child_process'
      import { readFileSync, writeFileSync } from 'node:fs'
      const tried = (f) => { try { return f() } catch (error) { return error.code } }
      function work(folder) {
        return [
          Object.keys(process.env).filter((name) => name !== 'TZ' && name !== 'NODE_EXTRA_CA_CERTS').length,
          tried(() => readFileSync(folder + '/mine.txt', 'utf8')),
          tried(() => readFileSync('/etc/passwd', 'utf8')),
          tried(() => writeFileSync(folder + '/new.txt', 'x')),
          tried(() => execSync('id')),
        ]
      }`
    const denied = 'ERR_ACCESS_DENIED'
    expect(await work(await open(attempts), folder)).toEqual([0, 'mine', denied, denied, denied])
  })

  test('an attached database neither reads nor writes a file', async () => {
    const file = join(folder, 'attached.db')
    const attempt = `async function work(file) {
      const { DatabaseSync } = await import('node:sqlite')
      new DatabaseSync(':memory:').exec("attach '" + file + "' as other; create table other.t (a)")
    }`
    await expect(work(await open(attempt), file)).rejects.toThrow(/No such built-in module/)
    expect(existsSync(file)).toBe(false)
  })

  test.each([
    ['opens a debugger', 'process._debugProcess(pid)', 'SIGUSR1'],
    ['sends a signal', "process._kill(pid, os.constants.signals['SIGUSR2'])", 'SIGUSR2'],
    ['sends a signal to its process group', 'new cp.ChildProcess()._handle.kill(12)', 'SIGUSR2'],
  ] as const)('code that %s does not reach the gateway', async (_, attack, signal) => {
    let received = 0
    const listener = () => void received++
    process.on(signal, listener)
    try {
      const source = `import os from 'node:os'\nimport cp from 'node:child_process'
        function work(pid) { try { return ${attack} === 0 } catch { return false } }`
      expect(await work(await open(source), process.pid)).toBe(false)
      await new Promise((done) => setTimeout(done, 50))
      expect(received).toBe(0)
    } finally {
      process.off(signal, listener)
    }
  })

  test('the priority of the gateway stays', async () => {
    const source = `import { setPriority } from 'node:os'
      function work(pid) { try { setPriority(pid, 1); return 'changed' } catch (error) { return error.message } }`
    expect(await work(await open(source), process.pid)).toMatch(/must not change priorities/)
  })
})

/** The code of a plug-in can write to the descriptor of its messages. */
describe('forged messages', () => {
  const forging = (text: string) =>
    open(`import { writeSync } from 'node:fs'
      function work() {
        const text = Buffer.from(${text})
        for (let from = 0; from < text.length; ) try { from += writeSync(3, text, from) } catch {}
        return new Promise(() => {})
      }`)
  const line = (message: object) => JSON.stringify(`${JSON.stringify(message)}\n`)
  const failure = { code: 'TARGET_FAILED' }

  test('a message that is none ends the process, and what follows is not read', async () => {
    const lines: string[] = []
    const log: Logger = { ...silentLogger, info: (text) => void lines.push(text) }
    const host = await open(
      `import { writeSync } from 'node:fs'
       function work() { writeSync(3, '1\\n' + '{"kind":"log","level":"info","message":"m"}\\n'.repeat(100)) }`,
      { log },
    )
    await expect(work(host)).rejects.toMatchObject(failure)
    expect(lines).toEqual([])
  })

  test.each([
    ['functions that are no list', line({ kind: 'ready', functions: 5 })],
    ['an error that is none', line({ kind: 'threw', id: 1 })],
    ['an error of objects', line({ kind: 'threw', id: 1, error: { message: { a: 1 }, stack: [1], code: { b: 2 } } })],
    ['a line without end', "'x'.repeat(17e6)"],
    ['an answer that nests deeply', `'{"kind":"answer","id":1,"value":' + '['.repeat(1e5) + ']'.repeat(1e5) + '}\\n'`],
  ])('%s', async (_, text) => {
    await expect(work(await forging(text))).rejects.toMatchObject(failure)
  })

  test('texts are cut, and arguments that are no list are none', async () => {
    const logged: unknown[] = []
    const log: Logger = { ...silentLogger, info: (_text, fields) => void logged.push(fields) }
    const host = await open(
      `import { writeSync } from 'node:fs'
       function work(id) {
         const send = (message) => writeSync(3, JSON.stringify(message) + '\\n')
         send({ kind: 'log', level: 'info', message: 'm'.repeat(20000), fields: { a: 'f'.repeat(20000) } })
         send(id === 2 ? { kind: 'answer', id, args: 5 } : { kind: 'threw', id, error: { message: 'e'.repeat(20000) } })
         return new Promise(() => {})
       }`,
      { log, start: () => [] },
    )
    const error = await host.call({ function: 'work', args: [1] }).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ message: expect.stringMatching(/^target "test": work: e{8192}$/) })
    expect(await host.call({ function: 'work', args: [2] })).toEqual({ value: undefined, args: [] })
    expect(logged[0]).toEqual({ plugin: 'target "test"', text: 'm'.repeat(8192) })
  })

  test('audit entries without end fail their call', async () => {
    const source = `async function work(how, request) {
      for (let i = 0; i < 3000; i++) {
        request.audit({ action: 'add', attribute: 'a'.repeat(8000) })
        if (i % 100 === 0) await new Promise((done) => setTimeout(done))
      }
    }`
    const host = await open(source, { memoryMegabytes: 256 })
    let entries = 0
    const onAudit = () => void entries++
    const call = host.call({ function: 'work', args: ['', {}], request: 1, onAudit })
    await expect(call).rejects.toThrow(/work has too many audit entries/)
    expect(entries).toBeLessThan(2200)
  })
})

test('an idle process is ended and restarted with its init', async () => {
  const starts: boolean[] = []
  const host = await open('function init(n) { state.n = n } function work() { return [state.n, process.pid] }', {
    idleMillis: 50,
    start: (restarted) => {
      starts.push(restarted)
      return [{ function: 'init', args: [restarted] }]
    },
  })
  const [first, pid] = (await work(host)) as [boolean, number]
  expect(first).toBe(false)
  await expect.poll(() => isAlive(pid), { timeout: 5000 }).toBe(false)
  expect(await work(host)).toEqual([true, expect.any(Number)])
  expect(starts).toEqual([false, true])
})

test('nothing is left running after close', async () => {
  const host = await open('function work() { return process.pid } function shutdown() { for (;;) {} }', {
    timeoutMillis: 1000,
  })
  const pid = (await work(host)) as number
  await host.close()
  expect(isAlive(pid)).toBe(false)
})

/** The idle process, or the one whose script computes without end; a script has a thread that notices. */
test.each([
  ['', ''],
  [
    ' during a script without end',
    `realm: { modules: [{ name: 'runtime', imports: {}, text: \`export const openRuntime = () => ({
        furnish() {}, load: () => '{"value":["work"]}', call: () => { for (;;) {} } })\` }], entry: 'runtime', signatures: {} },`,
  ],
])(
  'nothing is left running when the gateway is killed%s',
  async (_, realm) => {
    const gateway = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '-'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
    gateway.stdin.end(`
    import { subscribe } from 'node:diagnostics_channel'
    const { PluginHost } = await import(${module('./plugin-host.ts')})
    const { silentLogger } = await import(${module('../../kernel/logger.ts')})
    let plugin
    subscribe('child_process', (message) => { plugin = message.process })
    const host = await PluginHost.open({
      name: 'x', code: { form: 'script', text: 'function work() {}' }, url: 'file:///x.js', folders: ['/nowhere'], ${realm}
      functions: ['work'], globals: {}, timeoutMillis: 60000, memoryMegabytes: 32, log: silentLogger, start: () => [],
    })
    void host.call({ function: 'work', args: [] })
    setTimeout(() => console.log(plugin.pid), 200)`)
    const pid = await new Promise<number>((found) => gateway.stdout.once('data', (line) => found(Number(line))))
    expect(isAlive(pid)).toBe(true)
    gateway.kill('SIGKILL')
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false)
  },
  20_000,
)

test('the network is available', async () => {
  const server = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    const host = await open('async function work(url) { return (await fetch(url)).text() }')
    expect(await work(host, `http://127.0.0.1:${port}/`)).toBe('hello')
  } finally {
    server.close()
  }
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
