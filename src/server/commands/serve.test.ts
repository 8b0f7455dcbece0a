import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { printWelcome, serveCommand } from '#server/commands/serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'serve-command-'))
const noPem = join(folder, 'no.pem')
writeFileSync(noPem, 'no PEM')
const pipe = join(folder, 'pipe')
execFileSync('mkfifo', [pipe])
const keyFile = join(folder, 'key.pem')
const { privateKey } = generateKeyPairSync('ed25519')
writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))

test.each([
  [[], '--config is required'],
  [['--config', folder, '--log-level', 'loud'], '--log-level must be one of'],
  [['--config', folder, '--drain-seconds', '-1'], '--drain-seconds'],
  [['--config', folder, '--listen', '8080'], '--listen: not HOST:PORT: 8080'],
  [['--config', folder, '--listen', 'localhost:99999'], '--listen: not HOST:PORT'],
  [['--config', folder, '--metrics', 'on'], '--metrics: not HOST:PORT: on'],
  [['--config', folder, '--trusted-proxy', '10.0.0.0/'], '--trusted-proxy: not an address or CIDR range'],
  [['--config', folder, '--tls-cert', noPem], '--tls-cert and --tls-key require each other'],
  [['--config', folder, '--tls-cert', join(folder, 'none'), '--tls-key', keyFile], '--tls-cert: ENOENT'],
  [['--config', folder, '--tls-cert', noPem, '--tls-key', keyFile], 'it is not a PEM file'],
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
  [['--config', folder, '--prt', '1'], "Unknown option '--prt'\n"],
])('wrong usage starts nothing and names the option: %j', async (args, message) => {
  const errors: string[] = []
  const data = join(folder, 'data')
  const code = await serveCommand([...args, '--data', data], { stdout: () => {}, stderr: (line) => errors.push(line) })
  expect(`${errors.join('\n')}\n`).toContain(message)
  expect(code).toBe(2)
  expect(existsSync(data)).toBe(false)
})

test('an audit sink on the file of the database starts nothing', async () => {
  const [config, data] = [join(folder, 'audited'), join(folder, 'data')]
  mkdirSync(config)
  writeFileSync(
    join(config, 'audit.yaml'),
    `apiVersion: gatehouse.dev/v1\nkind: AuditSink\nmetadata: { name: a }\nspec: { className: auditSinks.File, params: { file: ${data}/gatehouse.db } }\n`,
  )
  const errors: string[] = []
  const io = { stdout: () => {}, stderr: (line: string) => errors.push(line) }
  expect(await serveCommand(['--config', config, '--data', data, '--listen', '127.0.0.1:0'], io)).toBe(1)
  expect(errors.join('\n')).toContain('which is the gateway’s own')
  expect(existsSync(data)).toBe(false)
})

const welcomeOf = (make: (file: string) => void): string[] => {
  const config = mkdtempSync(join(folder, 'welcome-'))
  make(join(config, 'welcome.txt'))
  const lines: string[] = []
  printWelcome(config, { GATEHOUSE_URL: 'http://x' }, { stdout: (line) => lines.push(line), stderr: () => {} })
  return lines
}

test('welcome.txt is printed with its known names replaced', () => {
  expect(welcomeOf((file) => writeFileSync(file, 'Open #[GATEHOUSE_URL], #[OTHER]\n'))).toEqual([
    '',
    'Open http://x, #[OTHER]',
  ])
})

test.each<[string, (file: string) => void]>([
  ['absent', () => {}],
  ['a folder', (file) => mkdirSync(file)],
  ['a pipe', (file) => execFileSync('mkfifo', [file])],
  ['a link that leads nowhere', (file) => symlinkSync('none', file)],
])('a welcome.txt that is %s prints nothing and stops nothing', (_, make) => {
  expect(welcomeOf(make)).toEqual([])
})
