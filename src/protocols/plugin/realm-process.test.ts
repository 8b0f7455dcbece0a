import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { programText } from './plugin-run.ts'

const program = (name: string) => programText(new URL(name, import.meta.url))

const runtime = `export const openRuntime = () => ({ furnish() {}, load: () => '{"value":[]}', call: () => '{}' })`

/** A thread would have none of the limits of its process: code that left the realm would be free. */
test("code that left the realm still can't start a thread", () => {
  const realm = { modules: [{ name: 'runtime', text: runtime, imports: {} }], entry: 'runtime', signatures: {} }
  const options = {
    realm,
    httpProgram: program('./http-thread.ts'),
    proxyVariables: {},
    text: '',
    url: 'file:///x.js',
    functions: [],
  }
  const main = `${program('./realm-process.ts')}
    await openRealm({ ...${JSON.stringify(options)}, settings: {}, timeoutMillis: 1000, log() {} })
    try { new Worker('', { eval: true }); console.log('free') } catch (error) { console.log(error.code) }
    process.exit()`
  const flags = [
    '--permission',
    '--allow-worker',
    '--experimental-vm-modules',
    '--no-warnings',
    '--input-type=module',
    '-',
  ]
  const { stdout, stderr } = spawnSync(process.execPath, flags, { input: main, timeout: 10_000, encoding: 'utf8' })
  expect([stdout.trim(), stderr]).toEqual(['ERR_ACCESS_DENIED', ''])
})
