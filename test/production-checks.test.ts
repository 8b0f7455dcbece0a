import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import process from 'node:process'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { checkCommand } from '#cli/commands/check.ts'
import { ConfiguredObjects, type ServeSettings } from '#cli/production/production-check.ts'
import { formatChecked, productionChecks, runProductionChecks } from '#cli/production/production-checks.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { buildConfiguration } from '#config/load/load.ts'
import { readDirectory } from '#config/sources/folder-documents.ts'
import { makeCertificate } from '#protocols/admission/webhook-tls.ts'
import { freshCertificate } from '#testing/gateway/test-certificates.ts'
import { filesOf } from '#testing/modules/check-text.ts'

const example = 'examples/production'
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-production-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Settings of a gateway that is ready for production. */
const ready: ServeSettings = {
  listen: '0.0.0.0:8080',
  metrics: '127.0.0.1:8081',
  tls: undefined,
  trustedProxies: ['10.0.0.0/8'],
  data: '/var/lib/gatehouse',
  temporary: ['/tmp/gone'],
  databaseUrl: 'postgres://gatehouse@db.example.com/gatehouse?sslmode=verify-full',
  environment: { GATEHOUSE_SECRET_KEY: 'given', GATEHOUSE_URL: 'https://portal.example.com' },
}

type Change = readonly [from: string, to: string]

/** The findings in the example after changes to its text or to the settings. */
async function findings({
  changes = [],
  settings = {},
  remedies = false,
}: Omit<Case, 'found'> = {}): Promise<string[]> {
  const sources = await readDirectory(example)
  const pending = new Set(changes)
  const files = sources.files.map((file) => {
    let { text } = file
    for (const change of changes) {
      if (!text.includes(change[0])) continue
      text = text.replace(change[0], change[1])
      pending.delete(change)
    }
    return { ...file, text }
  })
  expect([...pending], 'the example has the texts that are changed').toEqual([])
  const options = { folder: example, catalog, environment: {}, strictSecrets: false, keepObjects: true }
  const { configuration, objects = [], issues } = buildConfiguration({ ...sources, files }, options)
  if (configuration === undefined) throw new Error(issues.map(formatIssue).join('\n'))
  const setup = {
    configuration,
    objects: new ConfiguredObjects(objects, catalog),
    settings: { ...ready, ...settings },
  }
  return runProductionChecks(setup)
    .filter(({ level }) => level !== 'ok')
    .map((line) => formatChecked(line).replace(remedies ? '' : ` ${line.remedy}`, ''))
}

interface Case {
  readonly changes?: readonly Change[]
  readonly settings?: Partial<ServeSettings>
  readonly remedies?: boolean
  /** Lines without their remedy; empty for a variation that also passes. */
  readonly found: readonly string[]
}

const code =
  '    - name: totp\n      required: required\n      params:\n        issuer: Example\n        enrol: "true"\n'
const passing = code.replace('enrol: "true"', 'passWithoutFactor: "true"')
const administrators = 'portal.yaml:53:13: spec.urls[1].filterChain[0].params.administrators'
const day = 86_400_000

const localAnchor = `apiVersion: openunison.tremolo.io/v1
kind: AuditAnchor
metadata: { name: anchors }
spec: { className: auditSinks.File,
  params: { file: ../audit/anchors.jsonl } }
`

/** As another authority would make it. */
function trustedPair(daysAgo: number) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const notBefore = new Date(Date.now() - daysAgo * day - 3_600_000)
  const certificate = makeCertificate({
    commonName: 'portal.example.com',
    issuerName: 'Example CA',
    issuerKey: privateKey,
    publicKey,
    notBefore,
    notAfter: new Date(notBefore.getTime() + 90 * day + 3_600_000),
    names: ['portal.example.com'],
  })
  return { certificate, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** A pair that was created this many days ago, and is valid for 90. */
function tlsFiles(
  name: string,
  { daysAgo = 0, mode = 0o600, pair = trustedPair(daysAgo) } = {},
): { certFile: string; keyFile: string } {
  const files = { certFile: join(folder, `${name}.crt`), keyFile: join(folder, `${name}.key`) }
  const { certificate, privateKey } = pair
  writeFileSync(files.certFile, certificate)
  writeFileSync(files.keyFile, privateKey)
  chmodSync(files.keyFile, mode)
  return files
}

const tls = tlsFiles('tls')
const open = tlsFiles('open', { mode: 0o644 })
const expired = tlsFiles('expired', { daysAgo: 100 })
const expiring = tlsFiles('expiring', { daysAgo: 80 })
const expiryOf = ({ certFile }: { certFile: string }): string =>
  new Date(new X509Certificate(readFileSync(certFile)).validTo).toISOString()
const dataFolder = join(folder, 'data')
const { GATEHOUSE_URL } = ready.environment

const noHumanCheck: Change = ['            humanCheck: proof-of-work\n', '']
const notAsked =
  'FAIL registration: portal.yaml:93:13: spec.urls[0].filterChain[0].params.workflowName: anyone, and any program, gets an account: the workflow "register-person" asks no approver before it provisions.'
const workflows = readFileSync(join(example, 'workflows.yaml'), 'utf8')
/** The tasks of the registration in the example. */
const registration = workflows.slice(
  workflows.indexOf('    - taskType: approval'),
  workflows.indexOf('---\n', workflows.indexOf('onSuccess')),
)
const indent = (text: string, by = '    '): string => text.replaceAll(/^(?=.)/gm, by)
const task = (taskType: string, ...lines: readonly string[]): string =>
  `- taskType: ${taskType}\n${lines.map((line) => indent(`${line}\n`, '  ')).join('')}`
const below = (branch: 'onSuccess' | 'onFailure', tasks: string): string =>
  `${branch}:\n${indent(tasks.trimEnd(), '  ')}`
const write = task('provision', 'target: people', 'sync: false', 'attributes: [userName, mail]')
const approval = registration.slice(0, registration.indexOf('      onSuccess')).replaceAll(/^ {4}/gm, '')
const ask = (...branches: readonly string[]): string =>
  `${approval}${branches
    .filter((branch) => branch !== '')
    .map((branch) => indent(`${branch}\n`, '  '))
    .join('')}`
const condition = (...branches: readonly string[]): string => task('ifAttrExists', 'name: mail', ...branches)

/** Tasks of a registration that grant an account without an approval, and others that do not. */
const unguarded: readonly (readonly [why: string, tasks: string])[] = [
  ['the approval comes after', indent(write + ask())],
  ['the account is created for denied users', indent(ask(below('onFailure', write)))],
  [
    'one branch of a condition has no approval',
    indent(condition(below('onSuccess', ask(below('onSuccess', write))), below('onFailure', write))),
  ],
  ['a condition asks in one branch only', indent(condition(below('onSuccess', ask())) + write)],
  ['a mapping writes before', indent(task('mapping', 'strict: false', 'map: []', below('onSuccess', write)) + ask())],
]
const guarded: readonly (readonly [why: string, tasks: string])[] = [
  ['below', indent(ask(below('onSuccess', write)))],
  ['after', indent(ask() + write)],
  ['nested', indent(condition(below('onSuccess', ask(below('onSuccess', write))), below('onFailure', ask() + write)))],
  ['both branches ask', indent(condition(below('onSuccess', ask()), below('onFailure', ask())) + write)],
]

const cases: Readonly<Record<string, readonly Case[]>> = {
  tls: [
    {
      settings: { trustedProxies: [] },
      found: ['FAIL tls: --listen: 0.0.0.0:8080 speaks plain HTTP, and no proxy with TLS is trusted.'],
    },
    {
      settings: { trustedProxies: ['0.0.0.0/0'] },
      found: ['FAIL tls: --trusted-proxy: 0.0.0.0/0 lets every client choose its own address and scheme.'],
    },
  ],
  'public-url': [
    ...[
      ['http://portal.example.com', 'http://portal.example.com sends users to plain HTTP'],
      ['https://localhost:8443', 'https://localhost:8443 is an address that only this machine reaches'],
      ['https://[::1]', 'https://[::1] is an address that only this machine reaches'],
      ['https://0.0.0.0:8080', 'https://0.0.0.0:8080 is an address that only this machine reaches'],
      [
        'https://other.example.com',
        'no URL is configured for the host "other.example.com", only for portal.example.com',
      ],
      ['portal.example.com', '"portal.example.com" is not an address that begins with https://'],
      ['', 'it is not set, so the configuration uses http://0.0.0.0:8080, the address of --listen'],
    ].map(([url, message]) => ({
      settings: { environment: { ...ready.environment, GATEHOUSE_URL: url } },
      found: [`FAIL public-url: GATEHOUSE_URL: ${message}.`],
    })),
    {
      settings: { environment: { ...ready.environment, GATEHOUSE_URL: 'https://Portal.Example.com:8443/' } },
      found: [],
    },
    // The values document of the example has it.
    { settings: { environment: { GATEHOUSE_SECRET_KEY: 'given' } }, found: [] },
    {
      changes: [['GATEHOUSE_URL: https://portal.example.com\n', '']],
      settings: { environment: { GATEHOUSE_SECRET_KEY: 'given' } },
      found: [
        'FAIL public-url: GATEHOUSE_URL: it is not set, so the configuration uses http://0.0.0.0:8080, the address of --listen.',
      ],
    },
    // The listener's own address is public.
    {
      changes: [['GATEHOUSE_URL: https://portal.example.com\n', '']],
      settings: {
        environment: { GATEHOUSE_SECRET_KEY: 'given' },
        tls,
        listen: 'portal.example.com:443',
      },
      found: [],
    },
  ],
  certificate: [
    { settings: { tls }, found: [] },
    {
      settings: { tls: expired },
      found: [`FAIL certificate: --tls-cert: the certificate expired on ${expiryOf(expired)}.`],
    },
    {
      settings: { tls: expiring },
      found: [`warn certificate: --tls-cert: the certificate expires on ${expiryOf(expiring)}, in 9 days.`],
    },
    {
      settings: { tls: { ...tls, keyFile: expired.keyFile } },
      found: ['FAIL certificate: --tls-cert: it cannot be used: the private key is not that of the certificate.'],
    },
    {
      settings: { tls: tlsFiles('init', { pair: freshCertificate() }) },
      found: [
        'FAIL certificate: --tls-cert: the certificate is the one that init made for a first start, which browsers and identity providers do not trust.',
      ],
    },
  ],
  keys: [
    {
      settings: { environment: { GATEHOUSE_URL }, data: dataFolder },
      found: [
        'FAIL keys: GATEHOUSE_SECRET_KEY: it is not set, so each gateway creates its own key, and cannot read what another sealed.',
      ],
    },
    { settings: { environment: { GATEHOUSE_URL }, data: dataFolder, databaseUrl: undefined }, found: [] },
    {
      settings: { databaseUrl: undefined, data: '/tmp/gone/gatehouse' },
      found: [
        'FAIL keys: --data: /tmp/gone/gatehouse is in /tmp/gone, a place for temporary files: the database and its keys are lost with it.',
      ],
    },
    {
      settings: { databaseUrl: undefined, data: '/nowhere/gatehouse' },
      found: ['FAIL keys: --data: /nowhere/gatehouse does not exist.'],
    },
    {
      settings: { tls: open },
      found: [`FAIL keys: ${open.keyFile}: other users can read this private key (mode 0644).`],
    },
  ],
  database: [
    {
      settings: { databaseUrl: 'postgres://gatehouse:hush@db.example.com/gatehouse' },
      found: [
        'FAIL database: --database: the connection to db.example.com is made without TLS, so others can read it or impersonate the database.',
      ],
    },
    {
      settings: { databaseUrl: 'postgres://gatehouse@db.example.com/gatehouse?sslmode=no-verify' },
      found: [
        'FAIL database: --database: the connection to db.example.com is made with sslmode=no-verify, so others can read it or impersonate the database.',
      ],
    },
    {
      settings: { databaseUrl: 'postgres://gatehouse:hush@127.0.0.1,db1.example.com,[2001:db8::2]:5433/gatehouse' },
      found: [
        'FAIL database: --database: the connection to db1.example.com and [2001:db8::2] is made without TLS, so others can read it or impersonate the database.',
      ],
    },
    {
      settings: { databaseUrl: 'postgres://gatehouse@db1.example.com,db2.example.com/gatehouse?sslmode=verify-full' },
      found: [],
    },
    { settings: { databaseUrl: 'postgres://gatehouse@127.0.0.1/gatehouse' }, found: [] },
    { settings: { databaseUrl: 'postgres:///gatehouse?host=/run/postgresql' }, found: [] },
  ],
  metrics: [
    {
      settings: { metrics: '192.0.2.1:8081' },
      found: ['FAIL metrics: --metrics: 192.0.2.1:8081 is a public address.'],
    },
    {
      settings: { metrics: '0.0.0.0:8081' },
      found: [
        'warn metrics: --metrics: 0.0.0.0:8081 is on all interfaces, as is the public listener: make sure that only your monitoring reaches it.',
      ],
    },
    { settings: { metrics: '10.1.2.3:8081' }, found: [] },
    { settings: { metrics: undefined }, found: [] },
  ],
  'demo-passwords': [
    {
      changes: [
        [
          '  suffix: ou=people,o=Tremolo\n',
          '  suffix: ou=people,o=Tremolo\n  params: { demoPasswords: values.yaml }\n',
        ],
      ],
      found: [
        'FAIL demo-passwords: authentication.yaml:9:13: spec.params.demoPasswords: everyone who has the configuration knows these passwords.',
      ],
    },
  ],
  'development-issuer': [
    {
      changes: [
        [
          '- className: filters.CallWorkflow\n          params:\n            allowedWorkflow: save-profile\n            subject: caller\n            declaredParamsOnly: "true"',
          '- className: filters.DevelopmentIssuer\n          params: { issuer: "http://127.0.0.1/dev" }',
        ],
      ],
      found: [
        'FAIL development-issuer: portal.yaml:121:11: spec.urls[0].filterChain[0]: anyone with the data folder can sign tokens of the development issuer.',
      ],
    },
    {
      changes: [['"#[WORKFORCE_ISSUER]"', 'http://127.0.0.1:8080/dev-issuer']],
      found: [
        'FAIL development-issuer: authentication.yaml:86:9: spec.authMechs[0].params.issuer: the chain trusts an issuer over plain HTTP, as only development issuers are reached.',
      ],
    },
  ],
  cookies: [
    {
      changes: [
        ['    timeout: 900\n', '    timeout: 900\n    secure: false\n    httpOnly: false\n    domain: example.com\n'],
      ],
      found: [
        'FAIL cookies: portal.yaml:12:5: spec.cookieConfig.secure: the cookie "portal" is also sent without TLS.',
        'FAIL cookies: portal.yaml:13:5: spec.cookieConfig.httpOnly: scripts can read the cookie "portal".',
        'warn cookies: portal.yaml:14:5: spec.cookieConfig.domain: every host of example.com gets the cookie "portal".',
      ],
    },
    {
      changes: [['    timeout: 900\n', '    timeout: 900\n    sameSite: None\n']],
      found: ['FAIL cookies: portal.yaml:12:5: spec.cookieConfig.sameSite: other sites can send the cookie "portal".'],
    },
  ],
  'second-factor': [
    {
      changes: [[code, '']],
      found: [
        `FAIL second-factor: ${administrators}: the chain "password-and-code" lets administrators in without a second factor.`,
      ],
    },
    {
      changes: [[code, code.replace('required: required', 'required: optional')]],
      found: [
        `FAIL second-factor: ${administrators}: the chain "password-and-code" lets administrators in without a second factor.`,
      ],
    },
    {
      // Only users who added an app must enter a code.
      changes: [[code, passing]],
      found: [
        `FAIL second-factor: ${administrators}: the chain "password-and-code" lets administrators in without a second factor.`,
      ],
    },
    {
      changes: [['  level: 10', '  level: 20']],
      found: [
        `FAIL second-factor: ${administrators}: a session of the chain "password" has no second factor, and its level is enough here.`,
      ],
    },
    {
      changes: [
        [
          code,
          '    - { name: workforce, required: required, params: { issuer: "https://login.example.com", clientid: portal, uidAttr: sub, noMatchOU: workforce } }\n',
        ],
        [
          'kind: AuthenticationMechanism\nmetadata:\n  name: totp\nspec:\n  className: auth.Totp\n  uri: /auth/totp',
          outsideLogin(),
        ],
      ],
      found: [
        `warn second-factor: ${administrators}: the chain "password-and-code" leaves it to another issuer whether administrators need a second factor.`,
      ],
    },
    {
      changes: [
        [code, '    - { name: include, required: required, params: { chainName: code } }\n'],
        ['kind: AuthenticationChain\nmetadata:\n  name: program', includedCode()],
      ],
      found: [],
    },
  ],
  'mail-links': [
    {
      changes: [
        [
          '        linkToDirectory: "false"\n',
          '        linkToDirectory: "true"\n        acceptUnverifiedMail: "true"\n',
        ],
        ['lookupFilter: ""', 'lookupFilter: (mail=${email})'],
      ],
      found: [
        'FAIL mail-links: authentication.yaml:90:9: spec.authMechs[0].params.acceptUnverifiedMail: anyone who can choose a mail address at the issuer can log in as its owner here.',
      ],
    },
  ],
  registration: [
    {
      changes: [
        ['            humanCheck: proof-of-work\n', ''],
        ['            workflowName: register-person', '            workflowName: save-profile'],
      ],
      found: [
        'FAIL registration: portal.yaml:93:13: spec.urls[0].filterChain[0].params.workflowName: anyone, and any program, gets an account: the workflow "save-profile" asks no approver.',
      ],
    },
    ...unguarded.map(([, tasks]) => ({ changes: [noHumanCheck, [registration, tasks] as const], found: [notAsked] })),
    ...guarded.map(([, tasks]) => ({ changes: [noHumanCheck, [registration, tasks] as const], found: [] })),
    {
      // The called workflow provisions before its approval.
      changes: [noHumanCheck, [registration, `${indent(task('callWorkflow', 'name: save-profile'))}${registration}`]],
      found: [notAsked],
    },
    {
      changes: [noHumanCheck, [registration, indent(`${ask('')}${task('callWorkflow', 'name: save-profile')}`)]],
      found: [],
    },
    { changes: [['            humanCheck: proof-of-work\n', '']], found: [] },
    { changes: [['            workflowName: register-person', '            workflowName: save-profile']], found: [] },
  ],
  'call-workflow': [
    {
      changes: [
        [
          '            allowedWorkflow: save-profile\n            subject: caller\n            declaredParamsOnly: "true"',
          '            allowedWorkflow: save-profile\n            requireRequestorMatch: "false"\n            allowGroups: ["*"]\n            subject: any',
        ],
      ],
      found: [
        'FAIL call-workflow: portal.yaml:124:13: spec.urls[0].filterChain[0].params.requireRequestorMatch: callers can name someone else as the requester.',
        'FAIL call-workflow: portal.yaml:125:27: spec.urls[0].filterChain[0].params.allowGroups[0]: callers can write every group.',
        'warn call-workflow: portal.yaml:126:13: spec.urls[0].filterChain[0].params.subject: callers can act for every user.',
      ],
    },
    {
      changes: [
        [
          '            allowedWorkflow: save-profile\n            subject: caller\n',
          '            allowedWorkflow: save-profile\n',
        ],
      ],
      found: [
        'FAIL call-workflow: portal.yaml:123:13: spec.urls[0].filterChain[0].params.allowedWorkflow: callers without a directory entry can act for every user, in any name and with every group.',
      ],
    },
  ],
  audit: [
    {
      changes: [[readFileSync(join(example, 'audit.yaml'), 'utf8'), '']],
      found: [
        'FAIL audit: the configuration: no copy or anchor of the audit is elsewhere, so an old backup can replace it unnoticed, and someone who has the key can rewrite it.',
      ],
    },
    {
      changes: [['kind: AuditSink', 'kind: AuditAnchor']],
      found: [],
    },
    // Beside the database of one machine; with PostgreSQL it is elsewhere.
    {
      changes: [[readFileSync(join(example, 'audit.yaml'), 'utf8'), localAnchor]],
      settings: { databaseUrl: undefined, data: dataFolder },
      found: [
        'FAIL audit: audit.yaml:5:13: spec.params.file: the file is on the disk of the audit itself, so an old backup can replace it unnoticed, and someone who has the key can rewrite it.',
      ],
    },
    { changes: [[readFileSync(join(example, 'audit.yaml'), 'utf8'), localAnchor]], found: [] },
  ],
}

function outsideLogin(): string {
  return `kind: AuthenticationMechanism
metadata:
  name: workforce
spec:
  className: auth.OpenIDConnect
  uri: /auth/workforce`
}

function includedCode(): string {
  return `kind: AuthenticationMechanism
metadata:
  name: include
spec:
  className: auth.IncludeChain
  uri: /auth/include
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: code
spec:
  level: 15
  root: o=Tremolo
  authMechs:
    - { name: totp, required: required, params: { issuer: Example } }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: program`
}

describe('gatehouse check --production', () => {
  beforeEach(() => {
    mkdirSync(join(dataFolder, 'keys'), { recursive: true, mode: 0o700 })
    chmodSync(dataFolder, 0o700)
  })

  test('reports nothing about examples/production', async () => {
    expect(await findings()).toEqual([])
  })

  test('shows each check fail', () => {
    expect(Object.keys(cases).sort()).toEqual(productionChecks.map(({ id }) => id).sort())
    for (const [id, tried] of Object.entries(cases)) {
      expect({ id, fails: tried.some(({ found }) => found.some((line) => line.startsWith('FAIL'))) }).toEqual({
        id,
        fails: true,
      })
    }
  })

  for (const [id, tried] of Object.entries(cases)) {
    test.each(tried)(`${id}: $found`, async ({ found, ...changed }) => {
      expect(await findings(changed)).toEqual(found)
    })
  }

  test('shows the expiry of a valid certificate', async () => {
    const args = ['--config', example, '--tls-cert', tls.certFile, '--tls-key', tls.keyFile]
    const output: string[] = []
    await checkCommand(['--production', ...args], { stdout: (line) => void output.push(line), stderr: () => {} })
    expect(output).toContain(`ok   certificate: Renew certificates in time: --tls-cert expires on ${expiryOf(tls)}`)
  })

  test('names a data folder that other users can enter, and files in it', async () => {
    const database = join(dataFolder, 'gatehouse.db')
    writeFileSync(database, '')
    chmodSync(database, 0o640)
    chmodSync(dataFolder, 0o755)
    expect(await findings({ settings: { databaseUrl: undefined, data: dataFolder } })).toEqual([
      `FAIL keys: ${dataFolder}: other users can access it (mode 0755).`,
      `FAIL keys: ${database}: other users can access it (mode 0640).`,
    ])
    chmodSync(database, 0o600)
  })
})

/**
 * Each file has a line `serve OPTIONS`, YAML as in test/config-errors, a cut line, and exactly the output of `gatehouse
 * check --production`. A line `config FOLDER` refers to YAML elsewhere.
 */
const cut = '---8<---\n'
const quickstartFails = [
  'tls',
  'public-url',
  'keys',
  'demo-passwords',
  'development-issuer',
  'cookies',
  'second-factor',
  'audit',
]
const goldenFiles = globSync('test/production-checks/*.txt').sort()

describe('the output of gatehouse check --production', () => {
  const names = ['GATEHOUSE_SECRET_KEY', 'GATEHOUSE_DATABASE', 'GATEHOUSE_URL'] as const
  const before = names.map((name) => [name, process.env[name]] as const)
  beforeEach(() => {
    for (const name of names) delete process.env[name]
    process.env['GATEHOUSE_URL'] = 'https://portal.example.com'
    process.env['GATEHOUSE_SECRET_KEY'] = Buffer.alloc(32).toString('base64')
  })
  afterEach(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })

  async function check(args: readonly string[]) {
    const [output, errors]: [string[], string[]] = [[], []]
    const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
    return { code: await checkCommand(['--production', ...args], io), output, errors }
  }

  for (const file of goldenFiles) {
    test(basename(file, '.txt'), async () => {
      const [input = '', expected] = readFileSync(file, 'utf8').split(cut)
      expect(expected, 'the file has a cut line').toBeDefined()
      const [, options = '', , named, yaml = ''] = /^serve([^\n]*)\n(config (\S+)\n)?(.*)$/s.exec(input) ?? []
      const config = named ?? mkdtempSync(join(folder, 'golden-'))
      if (named === undefined) for (const { name, text } of filesOf(yaml)) writeFileSync(join(config, name), text)
      const { code, output } = await check(['--config', config, ...options.split(' ').filter((word) => word !== '')])
      const lines = (expected ?? '').split('\n').filter((line) => line !== '')
      expect(output).toEqual(lines)
      expect(code).toBe(lines.some((line) => line.startsWith('FAIL')) ? 1 : 0)
    })
  }

  test('there are files to check', () => expect(goldenFiles.length).toBeGreaterThan(1))

  const database = 'postgres://gatehouse@db.example.com/gatehouse?sslmode=verify-full'

  test('examples/quickstart fails for its trial settings', async () => {
    delete process.env['GATEHOUSE_URL']
    const { code, output } = await check(['--config', 'examples/quickstart', '--data', '/nowhere/gatehouse'])
    const failed = output.filter((line) => line.startsWith('FAIL')).map((line) => line.slice(5, line.indexOf(':')))
    expect(code).toBe(1)
    expect([...new Set(failed)]).toEqual(quickstartFails)
  })

  test('prints JSON for programs', async () => {
    delete process.env['GATEHOUSE_URL']
    const { code, output } = await check([
      '--config',
      'examples/quickstart',
      '--output',
      'json',
      '--database',
      database,
    ])
    const { checks: lines } = JSON.parse(output.join('\n'))
    expect(code).toBe(1)
    expect(new Set(lines.map(({ check }: { check: string }) => check))).toEqual(
      new Set(productionChecks.map(({ id }) => id)),
    )
    expect(lines).toContainEqual({
      level: 'fail',
      check: 'demo-passwords',
      title: 'Remove demo passwords',
      at: expect.stringMatching(/^login\.yaml:\d+:7: spec\.params\[0\]\.value$/),
      message: 'everyone who has the configuration knows these passwords',
      remedy: expect.stringContaining('gatehouse user passwd'),
    })
  })

  test('a configuration with errors is not checked further', async () => {
    writeFileSync(join(folder, 'broken.yaml'), 'kind: Target\n')
    const { code, output } = await check(['--config', folder])
    expect({ code, output }).toEqual({
      code: 1,
      output: [
        'broken.yaml:1:1: apiVersion: is required',
        '1 set aside because of its own errors: Target broken.yaml',
        '7 objects served, 1 set aside',
      ],
    })
  })

  test.each([
    [['--listen', 'nonsense'], 'not HOST:PORT'],
    [['--trusted-proxy', '10.0.0.0/99'], 'not an address or CIDR range'],
    [['--tls-cert', 'a.pem'], 'require each other'],
    [['--database', 'mysql://x'], 'starts with postgres:// or sqlite:'],
    [['--database', 'postgres://u:hush@one,two:x/db'], '--database: host 2 of the address must be a name'],
    [['--database', 'postgres://one,two/db?target_session_attrs=standby'], 'must be read-write, primary or any'],
  ])('%j is wrong usage', async (args, message) => {
    const { code, errors } = await check(['--config', example, ...args])
    expect({ code, first: errors[0] }).toEqual({ code: 2, first: expect.stringContaining(message) })
  })

  test('options of serve need --production', async () => {
    const io = { stdout: () => {}, stderr: () => {} }
    expect(await checkCommand(['--config', example, '--listen=127.0.0.1:1'], io)).toBe(2)
    expect(await checkCommand(['--config', example], io)).toBe(0)
  })
})

test.each<[string, Omit<Case, 'found'>, string]>([
  [
    'data in a temporary place, with a key',
    { settings: { databaseUrl: undefined, data: '/tmp/gone/gatehouse' } },
    'FAIL keys: --data: /tmp/gone/gatehouse is in /tmp/gone, a place for temporary files: the database and its keys are lost with it. Put it on a disk that stays.',
  ],
  [
    'no key',
    { settings: { environment: { GATEHOUSE_URL }, data: mkdtempSync(join(folder, 'own-')) } },
    'FAIL keys: GATEHOUSE_SECRET_KEY: it is not set, so each gateway creates its own key, and cannot read what another sealed. Give it to every gateway; "openssl rand -base64 32" makes one.',
  ],
  [
    'an open key',
    { settings: { tls: open } },
    `FAIL keys: ${open.keyFile}: other users can read this private key (mode 0644). Use mode 0700 for folders and 0600 for files.`,
  ],
  [
    'any proxy',
    { settings: { trustedProxies: ['0.0.0.0/0'] } },
    'FAIL tls: --trusted-proxy: 0.0.0.0/0 lets every client choose its own address and scheme. Name the addresses of the proxy only.',
  ],
])('a finding says what to do about its own cause: %s', async (_, given, expected) => {
  expect(await findings({ ...given, remedies: true })).toEqual([expected])
})

test('the guide has a section for each check, in the same order, and names its id', () => {
  const guide = readFileSync('docs/guides/hardening.md', 'utf8')
  const sections = guide
    .split(/^## /m)
    .slice(1)
    .map((text) => ({ title: text.slice(0, text.indexOf('\n')), id: /`([a-z-]+)`/.exec(text)?.[1] }))
  const checked = productionChecks.map(({ id, title }) => ({ title, id }))
  expect(sections.slice(0, checked.length)).toEqual(checked)
})
