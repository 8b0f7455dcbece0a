import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loginKinds } from '#cli/init/plan.ts'
import type { Terminal } from '#cli/init/questions.ts'
import { targetKinds } from '#cli/init/target.ts'
import { ConfiguredObjects } from '#cli/production/production-check.ts'
import { formatChecked, runProductionChecks } from '#cli/production/production-checks.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { initCommandOn } from './init.ts'

async function run(args: readonly string[], terminal?: Terminal) {
  const [output, errors]: [string[], string[]] = [[], []]
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await initCommandOn(terminal)([...args], io)
  return { code, text: output.join('\n'), errors: errors.join('\n') }
}

const domain = ['--domain', 'idm.example.com']
const filesIn = (folder: string): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()

/** The variables of gatehouse.env. */
function environmentIn(folder: string): Record<string, string> {
  const lines = readFileSync(join(folder, 'gatehouse.env'), 'utf8').matchAll(/^([A-Z_]+)='?([^'\n]*)'?$/gm)
  return Object.fromEntries(Array.from(lines, ([, name = '', value = '']) => [name, value]))
}

/** What `check --production` prints about the folder, but for what init can't provide: a place elsewhere. */
async function problemsOf(folder: string): Promise<string[]> {
  return (await allProblemsOf(folder)).filter((line) => !/^FAIL (?:certificate|audit): /.test(line))
}

/** Without the lines of what is fine. */
async function allProblemsOf(folder: string): Promise<string[]> {
  const environment = environmentIn(folder)
  const config = join(folder, 'config')
  const options = { folder: config, catalog, environment, strictSecrets: true, keepObjects: true }
  const { configuration, issues, objects = [] } = await loadConfiguration(options)
  if (configuration === undefined || issues.length > 0) return issues.map(formatIssue)
  const settings = {
    listen: '0.0.0.0:8443',
    metrics: '127.0.0.1:8081',
    tls: { certFile: join(folder, 'tls/tls.crt'), keyFile: join(folder, 'tls/tls.key') },
    trustedProxies: [],
    data: join(folder, 'data'),
    // Tests work in a folder for temporary files.
    temporary: [],
    databaseUrl: environment['GATEHOUSE_DATABASE'],
    environment,
  }
  return runProductionChecks({ configuration, objects: new ConfiguredObjects(objects, catalog), settings })
    .filter(({ level }) => level !== 'ok')
    .map(formatChecked)
}

function targetArgs(kind: (typeof targetKinds)[number], folder: string): string[] {
  const secret = join(folder, 'secret')
  writeFileSync(secret, kind === 'ldap' ? 'it\'s "#[SECRET]" & more\n' : 'a1.b2_c3~d4+e5/f6=\n')
  const url = {
    none: '',
    sql: 'postgres://crm:it%27s@db.example.com/crm?sslmode=verify-full',
    ldap: 'ldaps://ldap.example.com',
  }
  if (kind === 'none') return []
  if (kind === 'sql') return ['--target', kind, '--target-url', url.sql]
  const [base, namespace] = [kind === 'ldap', kind === 'kubernetes']
  return [
    ...['--target', kind, '--target-url', kind === 'ldap' ? url.ldap : 'https://target.example.com/api'],
    ...['--target-secret-file', secret],
    ...(base ? ['--target-base', 'o=Example: Sons # & Co,c=US', '--target-user', "cn=it's: me,c=US"] : []),
    ...(namespace ? ['--target-namespace', 'people'] : []),
  ]
}

const loginArgs = {
  passwords: [],
  oidc: ['--issuer', 'https://login.example.com', '--client-id', 'it\'s: "me" # 1'],
  okta: ['--issuer', 'example.okta.com', '--client-id', '0oa1'],
  entra: ['--issuer', '11111111-2222-3333-4444-555555555555', '--client-id', 'true'],
} as const
const databases = [
  'sqlite',
  "postgres://gatehouse:it's@db1.example.com:5433,[2001:db8::2]/gatehouse?sslmode=verify-full",
]

describe.each(databases)('with the database %s', (database) => {
  describe.each(targetKinds)('and the target %s', (target) => {
    test.each(loginKinds)(
      'and the login %s, it passes check --production but for what must be elsewhere',
      async (login) => {
        const around = temporaryFolder()
        const folder = join(around, 'gateway')
        const administrator = login === 'passwords' ? [] : ['--administrator', 'ada@example.com']
        const choices = ['--database', database, ...targetArgs(target, around), '--login', login, ...loginArgs[login]]
        const { code, errors } = await run([folder, ...domain, ...choices, ...administrator])
        expect([code, errors]).toEqual([0, ''])
        const outside = /leaves it to another issuer whether administrators need a second factor/
        const isSqlite = environmentIn(folder)['GATEHOUSE_DATABASE'] === undefined
        expect((await allProblemsOf(folder)).filter((line) => !outside.test(line))).toEqual([
          expect.stringContaining('FAIL certificate: --tls-cert: the certificate is the one that init made'),
          ...(isSqlite ? [expect.stringMatching(/^FAIL audit: .* the file is on the disk of the audit itself/)] : []),
        ])
      },
    )
  })
})

test('secrets are readable by their owner only, and the token is stored as a hash', async () => {
  const around = temporaryFolder()
  const folder = join(around, 'gateway')
  const { text } = await run([folder, ...domain, ...targetArgs('scim', around)])
  const token = /[0-9a-f]{64}/.exec(text)?.[0] ?? ''
  expect(readFileSync(join(folder, 'config/secrets/scim/token'), 'utf8')).toBe(
    `sha256:${hash('sha256', token, 'hex')}\n`,
  )
  const modes = ['gatehouse.env', 'tls/tls.key', 'config/secrets/scim/token', 'config/secrets/accounts/secret']
  expect(modes.map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual(modes.map(() => 0o600))
  for (const name of ['config/secrets', 'data']) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o700)
  const files = filesIn(folder).filter((name) => statSync(join(folder, name)).isFile())
  expect(files.filter((name) => readFileSync(join(folder, name), 'utf8').includes(token))).toEqual([])
  const ignored = readFileSync(join(folder, '.gitignore'), 'utf8')
  for (const name of ['/gatehouse.env', '/config/secrets/', '/tls/', '/data/']) expect(ignored).toContain(name)
})

describe('--create-target', () => {
  const sqlite = (file: string): string[] => ['--target', 'sql', '--target-url', `sqlite:${file}`]

  test('creates the sample tables, and without it the command to create them is printed', async () => {
    const around = temporaryFolder()
    const file = join(around, 'crm.db')
    const { code, text } = await run([join(around, 'gateway'), ...domain, ...sqlite(file), '--create-target'])
    expect([code, text.includes('Created the tables of target-schema.sql')]).toEqual([0, true])
    const database = new DatabaseSync(file, { readOnly: true })
    expect(database.prepare('select external_id, locale from accounts').all()).toEqual([])
    database.close()
    const { text: printed } = await run([join(around, 'other'), ...domain, ...sqlite(join(around, 'new.db'))])
    expect(printed).toContain(`${join(around, 'new.db')} does not exist yet`)
    expect(printed).toContain(`sqlite3 ${join(around, 'new.db')} < ${join(around, 'other/target-schema.sql')}`)
    expect(existsSync(join(around, 'new.db'))).toBe(false)
    const { text: existing } = await run([join(around, 'third'), ...domain, ...sqlite(file)])
    expect(existing).not.toContain('does not exist')
    expect(existing).toContain(`sqlite3 ${file} < ${join(around, 'third/target-schema.sql')}`)
  })

  test('a database in a folder that is missing is not created, and the error says what to do', async () => {
    const around = temporaryFolder()
    const [folder, file] = [join(around, 'gateway'), join(around, 'missing/crm.db')]
    const { code, errors } = await run([folder, ...domain, ...sqlite(file), '--create-target'])
    expect([code, errors]).toEqual([
      1,
      expect.stringContaining(
        `--create-target: the folder ${join(around, 'missing')} does not exist. Create it first.`,
      ),
    ])
    expect(existsSync(folder)).toBe(false)
    const { text } = await run([folder, ...domain, ...sqlite(file)])
    expect(text).toContain(`${file} does not exist yet, nor does its folder`)
    expect(text).toContain(`mkdir -p ${join(around, 'missing')} && sqlite3 ${file} < `)
  })

  test('leaves nothing behind if it fails', async () => {
    const around = temporaryFolder()
    const file = join(around, 'crm.db')
    const database = new DatabaseSync(file)
    database.exec('create table teams (name text)')
    database.close()
    const { code, errors } = await run([join(around, 'gateway'), ...domain, ...sqlite(file), '--create-target'])
    expect([code, errors]).toEqual([1, expect.stringMatching(/--create-target: .*Nothing was written/)])
    expect(existsSync(join(around, 'gateway'))).toBe(false)
    const left = new DatabaseSync(file, { readOnly: true })
    expect(left.prepare('select name from sqlite_schema where type = ?').all('table')).toEqual([{ name: 'teams' }])
    left.close()
  })

  test('has no effect with other targets, and says so', async () => {
    const around = temporaryFolder()
    const { code, errors } = await run([
      join(around, 'gateway'),
      ...domain,
      ...targetArgs('scim', around),
      '--create-target',
    ])
    expect([code, errors]).toEqual([2, expect.stringContaining('--create-target has no effect with --target scim')])
  })
})

test('an LDAP target comes with its entries and its schema', async () => {
  const around = temporaryFolder()
  const folder = join(around, 'gateway')
  const { text } = await run([folder, ...domain, ...targetArgs('ldap', around)])
  expect(text).toMatch(/ou=people,o=Example: Sons # & Co,c=US/)
  expect(text).toMatch(/ldapadd -x .*target-entries\.ldif/)
  expect(readFileSync(join(folder, 'target-entries.ldif'), 'utf8')).toContain(
    'dn: ou=groups,o=Example: Sons # & Co,c=US\n',
  )
  const schema = readFileSync(join(folder, 'target-schema.ldif'), 'utf8')
  for (const name of ['scimPerson', 'scimGroup'])
    expect(schema).toMatch(new RegExp(`^olcObjectClasses: .*'${name}'`, 'm'))
})

test('the certificate authority of a target is kept in the configuration', async () => {
  const around = temporaryFolder()
  const folder = join(around, 'gateway')
  writeFileSync(join(around, 'ca.pem'), testServerCertificate)
  const authority = ['--target-ca', join(around, 'ca.pem')]
  expect((await run([folder, ...domain, ...targetArgs('ldap', around), ...authority])).code).toBe(0)
  expect(await problemsOf(folder)).toEqual([])
  expect(readFileSync(join(folder, 'config/certificates/target-ca.pem'), 'utf8')).toBe(testServerCertificate)
})

test('--local is for a browser on this machine: no certificate, no public name', async () => {
  const folder = join(temporaryFolder(), 'gateway')
  const { code, text, errors } = await run([folder, '--local'])
  expect([code, errors]).toEqual([0, ''])
  expect(text).toContain(
    'Open http://localhost:8080/portal in a browser of this machine, and log in as admin. The first login of a user sets up an authenticator app: have one at hand.',
  )
  expect(readFileSync(join(folder, 'config/welcome.txt'), 'utf8')).toBe(
    'Open the portal: http://localhost:8080/portal\n',
  )
  expect(text).toContain('--listen 127.0.0.1:8080')
  expect(text).not.toMatch(/https:|tls|--production|--resolve/)
  expect(existsSync(join(folder, 'tls'))).toBe(false)
  const { issues } = await loadConfiguration({
    folder: join(folder, 'config'),
    catalog,
    environment: environmentIn(folder),
    strictSecrets: true,
  })
  expect(issues).toEqual([])
})

test('the certificate authority of an issuer is what gatehouse.env lets Node.js trust', async () => {
  const around = temporaryFolder()
  const folder = join(around, 'gate way')
  const authority = join(around, 'ca.pem')
  writeFileSync(authority, testServerCertificate)
  const login = ['--login', 'oidc', ...loginArgs.oidc, '--administrator', 'ada@example.com']
  expect((await run([folder, ...domain, ...login, '--issuer-ca', authority])).code).toBe(0)
  const file = join(folder, 'tls/issuer-ca.crt')
  expect(readFileSync(file, 'utf8')).toBe(testServerCertificate)
  expect(environmentIn(folder)['NODE_EXTRA_CA_CERTS']).toBe(file)
})

test.each<[string, readonly string[], RegExp]>([
  ['a public name for --local', [...domain, '--local'], /--domain: "idm\.example\.com" can't be used with --local/],
  ['another port for --local', ['--local', '--domain', 'localhost:99999'], /can't be used with --local/],
  [
    'an authority without an issuer',
    [...domain, '--issuer-ca', 'x'],
    /--issuer-ca has no effect with --login passwords/,
  ],
  ['no domain', [], /--domain is required/],
  ['this machine', ['--domain', 'localhost'], /--domain: "localhost" is this machine only/],
  ['a URL as domain', ['--domain', 'https://idm.example.com'], /--domain: .* is not a host name/],
  ['a line break', ['--domain', 'idm.example.com\nX: y'], /--domain: .* is not a host name/],
  [
    'a database without TLS',
    [...domain, '--database', 'postgres://db.example.com/x'],
    /--database: .*sslmode=verify-full/,
  ],
  [
    'a database with a wrong host',
    [...domain, '--database', 'postgres://one,two:x/db?sslmode=verify-full'],
    /--database: host 2 of the address must be a name/,
  ],
  ['another database', [...domain, '--database', 'mysql://db'], /--database: must be sqlite, or begin with postgres/],
  ['an unknown target', [...domain, '--target', 'csv'], /--target: must be one of none, sql/],
  ['a target without address', [...domain, '--target', 'scim'], /--target-url is required/],
  [
    'a target over plain HTTP',
    [...domain, '--target', 'scim', '--target-url', 'http://a.example.com'],
    /--target-url: must begin with https/,
  ],
  [
    'a value reference',
    [...domain, '--target', 'scim', '--target-url', 'https://a.example.com/#[HOME]'],
    /must not contain "#\[" or/,
  ],
  [
    'a missing secret',
    [...domain, '--target', 'scim', '--target-url', 'https://a.example.com'],
    /--target-secret-file is required/,
  ],
  [
    'an option without effect',
    [...domain, '--issuer', 'https://a.example.com'],
    /--issuer has no effect with --login passwords/,
  ],
  [
    'an issuer over plain HTTP',
    [...domain, '--login', 'oidc', '--issuer', 'http://a.example.com'],
    /--issuer: .* begins with https/,
  ],
  ['no client id', [...domain, '--login', 'okta', '--issuer', 'a.okta.com'], /--client-id is required/],
  [
    'a line break in the client id',
    [...domain, '--login', 'okta', '--issuer', 'a.okta.com', '--client-id', 'a\nb: c'],
    /--client-id: must not contain line breaks/,
  ],
])('%s is wrong usage, and writes nothing', async (_, args, problem) => {
  const around = temporaryFolder()
  const { code, errors } = await run([join(around, 'gateway'), ...args])
  expect(code).toBe(2)
  expect(errors).toMatch(problem)
  expect(filesIn(around)).toEqual([])
})

test('a password in a wrong address is not shown', async () => {
  const args = [join(temporaryFolder(), 'gateway'), ...domain, '--database', 'postgres://u:hunter2@db.example.com/x']
  expect((await run(args)).errors).not.toContain('hunter2')
})

test('a folder with files stays as it is, and an empty one is used', async () => {
  const around = temporaryFolder()
  const folder = join(around, 'gateway')
  mkdirSync(folder)
  expect((await run([folder, ...domain])).code).toBe(0)
  const before = filesIn(around)
  const again = await run([folder, ...domain])
  expect([again.code, again.errors]).toEqual([1, expect.stringContaining('is not empty, so nothing was written')])
  expect(filesIn(around)).toEqual(before)
  const file = await run([join(folder, 'gatehouse.env'), ...domain])
  expect([file.code, file.errors]).toEqual([1, expect.stringContaining('is a file')])
})

describe('on a terminal', () => {
  /** Answers each prompt, once it appears. */
  function answering(answers: readonly string[]) {
    const input = new PassThrough()
    let shown = ''
    const left = [...answers]
    const output = {
      write: (text: string) => {
        shown += text
        if (!/: $/.test(text)) return
        const next = left.shift()
        if (next !== undefined) setImmediate(() => input.write(next))
      },
    }
    return { terminal: { input, output }, shown: () => shown }
  }

  test('it asks for what the options leave open, again after a wrong answer, and hides secrets', async () => {
    const around = temporaryFolder()
    const folder = join(around, 'gateway')
    const { terminal, shown } = answering([
      'localhost\r',
      'idm.example.com\r',
      '\r',
      'ldap\r',
      'ldaps://ldap.example.com\r',
      'dc=example,dc=com\r',
      '\r',
      'hunter2\r',
      'passwords\r',
      'ada\r',
    ])
    const { code, text, errors } = await run([folder], terminal)
    expect([code, errors]).toEqual([0, ''])
    expect(shown()).toContain('"localhost" is this machine only')
    expect(shown()).toContain('[cn=admin,dc=example,dc=com]')
    expect(shown()).not.toContain('hunter2')
    // No prompt is erased after it was written.
    expect(
      shown()
        .split('\u001b[1G\u001b[0J')
        .slice(0, -1)
        .filter((before) => before.endsWith(': ')),
    ).toEqual([])
    expect(readFileSync(join(folder, 'config/secrets/accounts/secret'), 'utf8')).toBe('hunter2\n')
    expect(text).toContain('user add ada ')
    expect(await problemsOf(folder)).toEqual([])
  })

  test.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('%s leaves nothing', async (_, key) => {
    const around = temporaryFolder()
    const { terminal } = answering(['idm.example.com\r', key])
    const { code, errors } = await run([join(around, 'gateway')], terminal)
    expect([code, errors]).toEqual([1, 'gatehouse init: cancelled; nothing was written'])
    expect(existsSync(join(around, 'gateway'))).toBe(false)
  })

  test('it gives up after five wrong answers', async () => {
    const around = temporaryFolder()
    const { terminal } = answering(Array(9).fill('nothing\r'))
    const { code, errors } = await run([join(around, 'gateway')], terminal)
    expect([code, errors]).toEqual([1, expect.stringContaining('too many wrong answers')])
    expect(filesIn(around)).toEqual([])
  })
})

test('an existing empty folder stays the same folder, also behind a link', async () => {
  const folder = temporaryFolder()
  const [target, link] = [join(folder, 'gateway'), join(folder, 'link')]
  mkdirSync(target, { mode: 0o750 })
  symlinkSync(target, link)
  const before = statSync(target)
  expect(await run([link, ...domain])).toMatchObject({ code: 0, errors: '' })
  expect(statSync(target)).toMatchObject({ ino: before.ino, mode: before.mode })
  expect(readdirSync(target).sort()).toEqual(['.gitignore', 'audit', 'config', 'data', 'gatehouse.env', 'tls'])
  expect(statSync(join(target, 'gatehouse.env')).mode & 0o777).toBe(0o600)
  expect(await problemsOf(target)).toEqual([])
  expect(readdirSync(folder).sort()).toEqual(['gateway', 'link'])
})

test('two at once make one folder', async () => {
  const target = temporaryFolder()
  const both = await Promise.all([run([target, ...domain]), run([target, ...domain])])
  expect(both.map(({ code }) => code).sort()).toEqual([0, 1])
  expect(await problemsOf(target)).toEqual([])
})

test('a link to nothing is refused', async () => {
  const folder = temporaryFolder()
  symlinkSync(join(folder, 'absent'), join(folder, 'link'))
  const { code, errors } = await run([join(folder, 'link'), ...domain])
  expect({ code, errors }).toEqual({
    code: 1,
    errors: expect.stringContaining('is a link to a folder that does not exist'),
  })
  expect(readdirSync(folder)).toEqual(['link'])
})
