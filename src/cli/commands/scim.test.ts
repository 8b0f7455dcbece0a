import { hash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { scimClientNames, scimClientYaml } from '#cli/init/scim.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { clientNames } from '#features/scim/contract/client-names.ts'
import type { JournalEntry, StoredJournalEntry } from '#features/scim/journal/journal-entry.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { initCommandOn } from './init.ts'
import { journalLines, scimCommand, wireCall } from './scim.ts'

const row = (path: string, more: Partial<JournalEntry> = {}): JournalEntry => ({
  time: new Date(),
  requestId: 'r',
  caller: 'idp',
  method: 'GET',
  path,
  status: 200,
  millis: 1,
  workflows: [],
  ...more,
})

async function dataFolder(): Promise<string> {
  const folder = temporaryFolder()
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  const failed = row('/b', { status: 404, error: 'no', time: new Date(Date.now() - 7200_000) })
  await storage.journal.append([
    { journal: 'people', keep: 1000, entries: [row('/a'), failed, row('/c')] },
    { journal: 'crm', keep: 1000, entries: [row('/d', { status: 500, error: 'no' })] },
    { journal: 'many', keep: 1000, entries: Array.from({ length: 700 }, (_, i) => row(`/many/${i}`)) },
  ])
  await storage.close()
  return folder
}

async function run(...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await scimCommand(args, io)
  return { code, output, errors, paths: () => calls(output).map(({ path }) => path) }
}

const calls = (output: readonly string[]): { readonly path: string }[] => JSON.parse(output.join('\n'))

test('log prints the latest matching calls, oldest first', async () => {
  const data = await dataFolder()
  const paths = async (...args: string[]) => (await run('log', '--data', data, '--output', 'json', ...args)).paths()
  expect(await paths('--gateway', 'people')).toEqual(['/b', '/a', '/c'])
  expect(await paths('--gateway', 'people', '--gateway', 'crm', '--failed')).toEqual(['/b', '/d'])
  expect(await paths('--status', '404')).toEqual(['/b'])
  expect(await paths('--gateway', 'people', '--since', '1h')).toEqual(['/a', '/c'])
  expect(await paths('--gateway', 'people', '--limit', '1')).toEqual(['/c'])
  expect(await paths()).toHaveLength(50)
  const many = await paths('--gateway', 'many', '--limit', '650')
  expect([many.length, many[0], many.at(-1)]).toEqual([650, '/many/50', '/many/699'])
})

test('a search without a result says so on stderr', async () => {
  const data = await dataFolder()
  const { code, output, errors } = await run('log', '--data', data, '--gateway', 'peopel')
  expect([code, output]).toEqual([0, []])
  expect(errors).toEqual(['There are no recorded calls that match. --gateway takes the name of an Application.'])
  expect((await run('log', '--data', data, '--status', '418')).errors).toEqual([
    'There are no recorded calls that match.',
  ])
})

test('for people, a line starts with time and status', async () => {
  const { code, output } = await run('log', '--data', await dataFolder(), '--gateway', 'crm')
  expect(code).toBe(0)
  expect(output[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z 500 GET {4}\/d \(1 ms\)$/)
})

test('a missing database is reported, and none is created', async () => {
  const folder = temporaryFolder()
  const { code, errors } = await run('log', '--data', folder)
  expect([code, errors]).toEqual([1, [expect.stringContaining('there is no database')]])
})

test.each([
  [['tail'], /unknown action "tail"; use log, init/],
  [['ini', '--client', 'okta'], /unknown action "ini"/],
  [['log', '--status', '20'], /--status/],
  [['log', '--since', 'yesterday'], /--since/],
  [['log', '--limit', '0'], /--limit/],
  [['log', '--limit', '100001'], /--limit/],
  [[], /missing argument: one of log, init/],
])('%j is wrong usage', async (args, problem) => {
  const { code, errors } = await run(...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(problem)
})

describe('scim init', () => {
  const url = 'https://idm.example.test'
  const init = (out: string, client: string, at = url) => run('init', '--client', client, '--url', at, '--out', out)

  test('every client of a SCIM gateway has a setup', () => {
    const others = clientNames.filter((name) => name !== 'tolerant' && name !== 'strict')
    expect([...scimClientNames].sort()).toEqual([...others, 'generic'].sort())
  })

  test.each(scimClientNames)(
    'writes a configuration for %s that check accepts, and prints what to enter',
    async (client) => {
      const out = join(temporaryFolder(), 'config')
      const { code, output, errors } = await init(out, client)
      expect([code, errors]).toEqual([0, []])
      const text = output.join('\n')
      const token = /[0-9a-f]{64}/.exec(text)?.[0] ?? ''
      expect(text).toContain(`${url}/scim/${client}`)
      const file = join(out, 'secrets', `scim-${client}`, 'token')
      expect(readFileSync(file, 'utf8')).toBe(`sha256:${hash('sha256', token, 'hex')}\n`)
      expect(statSync(file).mode & 0o777).toBe(0o600)
      const { issues } = await loadConfiguration({ folder: out, catalog, environment: {}, strictSecrets: true })
      expect(issues.map(formatIssue)).toEqual([])
    },
  )

  test('writes a gateway, users and tokens of its own for each tenant', async () => {
    const out = temporaryFolder()
    const tenant = (name: string, client = 'entra') =>
      run('init', '--client', client, '--tenant', name, '--url', url, '--out', out)
    await init(out, 'entra')
    const { code, output } = await tenant('acme-corp')
    expect(code).toBe(0)
    const text = output.join('\n')
    expect(text).toContain(`${url}/tenants/acme-corp/scim?aadOptscim062020`)
    expect(text).toContain('scim token create --client acme-corp')
    expect((await tenant('umbrella', 'okta')).code).toBe(0)
    expect(existsSync(join(out, 'secrets', 'scim-acme-corp'))).toBe(false)
    const { issues, configuration } = await loadConfiguration({
      folder: out,
      catalog,
      environment: {},
      strictSecrets: true,
    })
    expect(issues.map(formatIssue)).toEqual([])
    expect([...(configuration?.targets.keys() ?? [])].sort()).toEqual([
      'acme-corp-users',
      'entra-users',
      'umbrella-users',
    ])
    expect([...(configuration?.outsideDirectory ?? [])].sort()).toEqual(['acme-corp-users', 'umbrella-users'])
    const before = readFileSync(join(out, 'umbrella.yaml'), 'utf8')
    expect((await tenant('umbrella', 'okta')).code).toBe(1)
    expect(readFileSync(join(out, 'umbrella.yaml'), 'utf8')).toBe(before)
    for (const odd of ['okta', 'Acme', '../acme', 'a/b', '', '1st', 'a'.repeat(42), 'a.b', 'a\nb']) {
      expect((await tenant(odd)).code, odd).toBe(2)
    }
  })

  test('several clients may share a folder, and each has its own token', async () => {
    const out = temporaryFolder()
    const tokens = new Set<string>()
    for (const client of scimClientNames) {
      const { code, output } = await init(out, client)
      expect(code).toBe(0)
      tokens.add(/[0-9a-f]{64}/.exec(output.join('\n'))?.[0] ?? '')
    }
    expect(tokens.size).toBe(scimClientNames.length)
    const { issues } = await loadConfiguration({ folder: out, catalog, environment: {}, strictSecrets: true })
    expect(issues.map(formatIssue)).toEqual([])
  })

  test.each(['entra.yaml', 'secrets/scim-entra/token'])('changes nothing if %s exists', async (name) => {
    const out = temporaryFolder()
    const file = join(out, name)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, 'mine')
    const before = readdirSync(out, { recursive: true })
    const { code, output, errors } = await init(out, 'entra')
    expect([code, output]).toEqual([1, []])
    expect(errors.join()).toContain(`${file} already exists`)
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect(readdirSync(out, { recursive: true })).toEqual(before)
  })

  test.each(['aardvark', 'strict', ''])('the client %j is rejected with the known ones', async (client) => {
    const out = temporaryFolder()
    const { code, errors } = await init(out, client)
    expect(code).toBe(2)
    for (const name of scimClientNames) expect(errors.join()).toContain(name)
    expect(errors.join()).toContain(`not "${client}"`)
    expect(readdirSync(out)).toEqual([])
  })

  test.each([
    ['idm.example.test', /is not a URL/],
    ['http://idm.example.test', /must start with https/],
    ['https://idm.example.test/scim', /must end after the host and port/],
    ['https://idm.example.test/?a=b', /must end after the host and port/],
    ['https://idm.example.test/#x', /must end after the host and port/],
    ['https://user:secret@idm.example.test', /must not contain a user/],
    ['https://[::1]', /needs a host name/],
    ['https://a_b$', /needs a host name|is not a URL/],
  ])('the URL %j is rejected', async (at, problem) => {
    const out = temporaryFolder()
    const { code, errors } = await init(out, 'okta', at)
    expect(code).toBe(2)
    expect(errors[0]).toMatch(problem)
    expect(readdirSync(out)).toEqual([])
  })

  test('a file as --out is rejected', async () => {
    const file = join(temporaryFolder(), 'config')
    writeFileSync(file, 'mine')
    const { code, errors } = await init(file, 'okta')
    expect([code, errors]).toEqual([1, [expect.stringContaining(`--out: ${file} is not a folder`)]])
    expect(readFileSync(file, 'utf8')).toBe('mine')
  })

  test('the port is part of the URL and of --listen, not of the host', async () => {
    const out = temporaryFolder()
    const { output } = await init(out, 'okta', 'https://IDM.example.test:8443/')
    expect(output.join('\n')).toContain('https://idm.example.test:8443/scim/okta')
    expect(output.join('\n')).toContain('--listen 0.0.0.0:8443 --tls-cert')
    expect(readFileSync(join(out, 'okta.yaml'), 'utf8')).toContain('OKTA_HOST: idm.example.test\n')
  })

  test('the commands to run next fit the folder: one that init made has secrets, data and certificate', async () => {
    const folder = temporaryFolder()
    const out = join(folder, 'config')
    vi.stubEnv('GATEHOUSE_COMMAND', 'bin/gatehouse')
    onTestFinished(() => void vi.unstubAllEnvs())
    const plain = (await init(out, 'okta')).output
    expect(plain).toContain(`  bin/gatehouse check --config ${out}`)
    expect(plain.join('\n')).toContain(`  bin/gatehouse serve --config ${out} --listen 0.0.0.0:443 --tls-cert CERT`)
    writeFileSync(join(folder, 'gatehouse.env'), '')
    const made = (await init(out, 'entra')).output
    expect(made).toContain(`  set -a; . ${folder}/gatehouse.env; set +a`)
    expect(made).toContain(
      `  bin/gatehouse serve --config ${out} --data ${folder}/data --listen 0.0.0.0:8443 --tls-cert ${folder}/tls/tls.crt --tls-key ${folder}/tls/tls.key`,
    )
  })

  const guides = globSync(['docs/guides/*.md', 'docs/reference/command-line.md', 'examples/scim/*.md'])
  const documented = guides.flatMap((page) =>
    Array.from(
      readFileSync(page, 'utf8').matchAll(/^bin\/gatehouse scim (init .*) --out config$/gm),
      ([, line = '']) => ({
        page,
        line,
      }),
    ),
  )

  test('the guides begin with the command', () => {
    const pages = ['entra-id', 'okta', 'sailpoint', 'scim-clients'].map((name) => `docs/guides/${name}.md`)
    expect(documented.map(({ page }) => page)).toEqual(expect.arrayContaining(pages))
  })

  test.each(documented)('$page: $line works as written', async ({ line }) => {
    const { code, errors } = await run(...line.split(' '), '--out', temporaryFolder())
    expect([code, errors]).toEqual([0, []])
  })

  test.each(['okta', 'entra'])('the guide of %s has the names of what both commands write', async (client) => {
    const page = readFileSync(`docs/guides/${client === 'entra' ? 'entra-id' : client}.md`, 'utf8')
    const rows = new Map(
      Array.from(page.matchAll(/^\| (.+?) \| (.+) \| (.+) \|$/gm), ([, row = '', ...cells]) => [
        row.replace(/\[(.+)\]\(.+\)/, '$1'),
        cells.slice(0, 2).map((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = '']) => name)),
      ]),
    )
    const [, line = ''] = /^bin\/gatehouse init my-gateway (.*)$/m.exec(page) ?? []
    const folder = temporaryFolder()
    const made = join(folder, 'made')
    const files = join(folder, 'config')
    const printed: string[] = []
    const io = { stdout: (text: string) => void printed.push(text), stderr: (text: string) => void printed.push(text) }
    expect([await initCommandOn(undefined)([made, ...line.split(' ')], io), printed.length > 9]).toEqual([0, true])
    const added = await init(files, client, 'https://idm.example.com')
    for (const [i, { config, text }] of [
      { config: files, text: added.output.join('\n') },
      { config: join(made, 'config'), text: printed.join('\n') },
    ].entries()) {
      const named = (row: string): readonly string[] => rows.get(row)?.[i] ?? []
      const yaml = globSync(join(config, '*.yaml'))
        .map((file) => readFileSync(file, 'utf8'))
        .join('\n')
      const [address = 'none'] = named('Address')
      expect(text).toMatch(new RegExp(`${address}$`, 'm'))
      expect(named('Files in `config`').length).toBeGreaterThan(1)
      for (const file of named('Files in `config`')) expect(existsSync(join(config, file)), file).toBe(true)
      const [gateway, target] = [named('Gateway in the journal')[0], named('Target of the users')[0]]
      expect(yaml).toContain(`kind: Application\nmetadata:\n  name: ${gateway}\n`)
      expect(yaml).toContain(`lookupTarget: ${target}\n`)
      expect(yaml).toContain(`client: ${client}\n`)
      const [write, remove] = named('Workflows')
      expect(yaml).toContain(` workflowName: ${write}\n`)
      expect(yaml).toContain(` deleteUserWorkflowName: ${remove}\n`)
    }
  })

  test.each(scimClientNames)('examples/scim/%s.yaml is what the command writes', (client) => {
    const host = 'idm.example.com'
    const written = scimClientYaml({ client, host, origin: `https://${host}` })
    expect(readFileSync(`examples/scim/${client}.yaml`, 'utf8')).toBe(written)
  })
})

const storedRow = (more: Partial<StoredJournalEntry> = {}): StoredJournalEntry => ({
  id: 7,
  journal: 'scim-people',
  time: new Date('2030-01-02T03:04:05.678Z'),
  requestId: 'r-1',
  caller: 'idp',
  method: 'GET',
  path: '/scim/Users/42',
  status: 200,
  millis: 3,
  workflows: [],
  ...more,
})

test('a read is one line', () => {
  expect(journalLines(storedRow(), 160)).toEqual(['2030-01-02T03:04:05.678Z 200 GET    /scim/Users/42 (3 ms)'])
})

test('a call that ran a workflow shows the run', () => {
  expect(journalLines(storedRow({ method: 'DELETE', status: 204, workflows: ['run-1'] }), 160)).toEqual([
    '2030-01-02T03:04:05.678Z 204 DELETE /scim/Users/42 (3 ms)',
    '    scim-people, idp, request r-1, run run-1',
  ])
})

test('a failed call shows its error, its changes and its origin', () => {
  const failed = storedRow({
    method: 'PATCH',
    status: 400,
    keyword: 'invalidPath',
    error: 'There is no attribute "foo".',
    workflows: ['run-1'],
    operations: [{ op: 'add', path: 'members', count: 3 }, { op: 'remove', path: 'emails[type eq ?]' }, { more: 2 }],
  })
  expect(journalLines(failed, 160)).toEqual([
    '2030-01-02T03:04:05.678Z 400 PATCH  /scim/Users/42 (3 ms)',
    '    invalidPath: There is no attribute "foo".',
    '    add members (3); remove emails[type eq ?]; 2 more',
    '    scim-people, idp, request r-1, run run-1',
  ])
  const many = journalLines(storedRow({ operations: [], error: 'x', workflows: ['a', 'b', 'c', 'd'] }), 160)
  expect(many.at(-1)).toBe('    scim-people, idp, request r-1, 4 runs')
})

test('lines fit the terminal and have no control characters', () => {
  const nasty = storedRow({
    path: `/\u001b[2J\u202e\n${'x'.repeat(500)}`,
    error: '\u009b31m',
    operations: ['x', 1, null],
  })
  const lines = journalLines(nasty, 80)
  for (const line of lines) {
    expect(line.length).toBeLessThanOrEqual(80)
    expect(line).not.toMatch(/[\p{Cc}\u202e]/u)
  }
  expect(journalLines(storedRow(), 1)[0]).toHaveLength(40)
})

test('JSON has the words of the API', () => {
  expect(wireCall(storedRow({ error: 'a\nb', keyword: 'invalidPath' }))).toMatchObject({
    id: 7,
    gateway: 'scim-people',
    time: new Date('2030-01-02T03:04:05.678Z'),
    error: 'a\nb',
    scimType: 'invalidPath',
  })
})
