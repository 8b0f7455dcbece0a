import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configurationText } from '#cli/command-line/configuration-text.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { tokenMechanism } from '#testing/stories/story-documents.ts'
import { examplesCommand } from './examples.ts'
// Loaded before the tests, whose time is limited.
import '#cli/serve/gateway.ts'
import { serveCommand } from './serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'serve-command-'))
const noPem = join(folder, 'no.pem')
writeFileSync(noPem, 'no PEM')
const pipe = join(folder, 'pipe')
execFileSync('mkfifo', [pipe])
const keyFile = join(folder, 'key.pem')
const certFile = join(folder, 'cert.pem')
writeFileSync(certFile, testServerCertificate)
const { privateKey } = generateKeyPairSync('ed25519')
writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))

test.each([
  [[], '--config is required'],
  [['--config', folder, '--log-level', 'loud'], '--log-level must be one of'],
  [['--config', folder, '--log-format', 'xml'], '--log-format must be one of'],
  [['--config', folder, '--drain-seconds', '-1'], '--drain-seconds'],
  // More than a timer can wait: it would not wait at all.
  [['--config', folder, '--drain-seconds', '2147484'], '--drain-seconds must be a whole number from 0 to 3600'],
  [['--config', folder, '--shutdown-delay', '1.5'], '--shutdown-delay must be a whole number from 0 to 3600'],
  [['--config', folder, '--listen', '8080'], '--listen: not HOST:PORT: 8080'],
  [['--config', folder, '--listen', 'localhost:99999'], '--listen: not HOST:PORT'],
  [['--config', folder, '--metrics', 'on'], '--metrics: not HOST:PORT: on'],
  [['--config', folder, '--trusted-proxy', '10.0.0.0/'], '--trusted-proxy: not an address or CIDR range'],
  [['--config', folder, '--tls-cert', noPem], '--tls-cert and --tls-key require each other'],
  [['--config', folder, '--tls-cert', join(folder, 'none'), '--tls-key', keyFile], '--tls-cert: ENOENT'],
  [['--config', folder, '--tls-cert', noPem, '--tls-key', keyFile], 'it is not a PEM file'],
  [['--config', folder, '--tls-cert', certFile, '--tls-key', keyFile], 'is not the key of the certificate in'],
  [['--config', folder, '--tls-cert', pipe, '--tls-key', keyFile], `--tls-cert: ${pipe} is not a file`],
  [['--config', folder, '--database', 'mysql://x'], '--database: a database address starts with'],
  [['--config', folder, '--workflow-attempts', '0'], '--workflow-attempts must be a whole number from 1 to 100'],
  [['--config', folder, '--workflow-lease-seconds', '1'], '--workflow-lease-seconds must be a whole number from 5'],
  [['--config', folder, '--workflow-step-seconds', 'long'], '--workflow-step-seconds must be'],
  [['--config', folder, '--workflow-parallel', '1e3'], '--workflow-parallel must be'],
  [['--config', folder, '--connections', '31'], '--connections must be a whole number from 32 to 1000000'],
  [['--config', folder, '--connections-per-address', '0'], '--connections-per-address must be'],
  [['--config', folder, '--header-seconds', '0'], '--header-seconds must be a whole number from 1 to 300'],
  [['--config', folder, '--request-seconds', '1.5'], '--request-seconds must be'],
  [['--config', folder, '--idle-seconds', '-1'], '--idle-seconds'],
  [['--config', folder, '--workers', '0'], '--workers must be auto or a whole number from 1 to 64'],
  [['--config', folder, '--workers', '65'], '--workers must be'],
  [['--config', folder, '--workers', '2'], '--workers 2 requires PostgreSQL, since SQLite serves one process'],
  [['--config', folder, '--workers', 'auto'], '--workers auto requires PostgreSQL'],
  [['--config', folder, '--workers', '2', '--database', `sqlite:${folder}/x.db`], '--workers 2 requires PostgreSQL'],
  [['--config', folder, '--prt', '1'], 'unknown option "--prt"\n'],
])('wrong usage starts nothing and names the option: %j', async (args, message) => {
  const errors: string[] = []
  const data = join(folder, 'data')
  const code = await serveCommand([...args, '--data', data], { stdout: () => {}, stderr: (line) => errors.push(line) })
  expect(`${errors.join('\n')}\n`).toContain(message)
  expect(code).toBe(2)
  expect(existsSync(data)).toBe(false)
})

test('with --strict, an audit sink on the file of the database starts nothing', async () => {
  const [config, data] = [join(folder, 'audited'), join(folder, 'data')]
  mkdirSync(config)
  writeFileSync(
    join(config, 'audit.yaml'),
    `apiVersion: gatehouse.dev/v1\nkind: AuditSink\nmetadata: { name: a }\nspec: { className: auditSinks.File, params: { file: ${data}/gatehouse.db } }\n`,
  )
  const errors: string[] = []
  const io = { stdout: () => {}, stderr: (line: string) => errors.push(line) }
  expect(await serveCommand(['--config', config, '--data', data, '--listen', '127.0.0.1:0', '--strict'], io)).toBe(1)
  expect(errors.join('\n')).toContain('which is the gateway’s own')
  expect(existsSync(data)).toBe(false)
})

test.each(['--listen', '--metrics'])('a port in use at %s is found before anything is written', async (option) => {
  const [config, data] = [join(folder, `used${option}`), join(folder, `used${option}-data`)]
  mkdirSync(config)
  writeFileSync(join(config, 'mechanism.yaml'), tokenMechanism)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const errors: string[] = []
  const io = { stdout: () => {}, stderr: (line: string) => errors.push(line) }
  const args = ['--config', config, '--data', data, '--listen', '127.0.0.1:0', '--metrics', '127.0.0.1:0']
  try {
    expect(await serveCommand([...args, option, `127.0.0.1:${port}`], io)).toBe(1)
  } finally {
    other.close()
  }
  expect(errors.join('\n')).toContain(`EADDRINUSE: address already in use 127.0.0.1:${port}; choose another --listen`)
  expect(existsSync(data)).toBe(false)
})

const setup = { config: 'my config', data: 'data', url: 'http://x' }
const welcomeOf = (make: (file: string) => void): string | undefined => {
  const config = mkdtempSync(join(folder, 'welcome-'))
  make(join(config, 'welcome.txt'))
  return configurationText(config, 'welcome.txt', setup)
}

test('the known names in welcome.txt are replaced', () => {
  const text = 'Open #[GATEHOUSE_URL], #[GATEHOUSE_CONFIG], #[OTHER]\n'
  expect(welcomeOf((file) => writeFileSync(file, text))).toBe('Open http://x, my config, #[OTHER]')
})

test.each<[string, (file: string) => void]>([
  ['absent', () => {}],
  ['a folder', (file) => mkdirSync(file)],
  ['a pipe', (file) => execFileSync('mkfifo', [file])],
  ['a link that leads nowhere', (file) => symlinkSync('none', file)],
])('a welcome.txt that is %s is no text and stops nothing', (_, make) => {
  expect(welcomeOf(make)).toBeUndefined()
})

async function examples(...args: string[]) {
  const [output, errors]: [string[], string[]] = [[], []]
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  return { code: await examplesCommand(args, io), output: output.join('\n'), errors: errors.join('\n') }
}

test('examples prints the commands of a configuration with the address of the gateway', async () => {
  const config = mkdtempSync(join(folder, 'examples-'))
  const missing = await examples('--config', config)
  expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('has no examples.txt')])
  writeFileSync(join(config, 'examples.txt'), 'curl #[GATEHOUSE_URL]/x --data #[GATEHOUSE_DATA]\n')
  expect(await examples('--config', config, '--url', 'https://a.test:8443', '--data', 'd')).toMatchObject({
    code: 0,
    output: 'curl https://a.test:8443/x --data d',
  })
  expect((await examples('--config', config, '--url', 'http://x; rm')).code).toBe(2)
  expect((await examples()).errors).toContain('--config is required')
})
