import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { checkCommand } from './check.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-check-'))
})
afterEach(() => rm(folder, { recursive: true }))

async function check(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await checkCommand(args, { stdout: (line) => out.push(line), stderr: (line) => err.push(line) })
  return { code, out, err }
}

const org =
  "apiVersion: gatehouse.dev/v1\nkind: Org\nmetadata: { name: o }\nspec: { uuid: '1', azRules: [{ scope: filter, constraint: '(uid=*)' }] }\n"
const application =
  "apiVersion: gatehouse.dev/v1\nkind: Application\nmetadata: { name: a }\nspec: { urls: [{ hosts: ['*'], uri: / }] }\n"

const nothing = 'nothing is served: an error concerns the whole configuration'

test('a valid configuration: what was checked, on standard error', async () => {
  await writeFile(join(folder, 'org.yaml'), `${org}---\n${org.replace('name: o', 'name: p').replace("'1'", "'2'")}`)
  expect(await check('--config', folder)).toEqual({
    code: 0,
    out: [],
    err: ['Checked 2 objects in 1 file (2 Org): no problems'],
  })
  await writeFile(join(folder, 'app.yaml'), application)
  const { out, err } = await check('--config', folder)
  expect(err).toEqual([`Checked 3 objects in 2 files (2 Org, 1 Application): ${out.length} warnings`])
  const json = await check('--config', folder, '--output', 'json')
  expect([JSON.parse(json.out.join('')), json.err]).toMatchObject([{ files: 2, kinds: { Org: 2, Application: 1 } }, []])
})

test('an error: exit 1', async () => {
  await writeFile(join(folder, 'org.yaml'), org.replace('uuid', 'uid'))
  const { code, out } = await check('--config', folder)
  expect(code).toBe(1)
  expect(out).toEqual([
    'org.yaml:4:1: spec.uuid: is required',
    'org.yaml:4:9: spec.uid: unknown key "uid" (did you mean "uuid"?)',
    '1 set aside because of its own errors: Org "o"',
    '0 objects served, 1 set aside',
  ])
})

test('the environment is shown by the names of its variables, also in --production', async () => {
  vi.stubEnv('MYPW', 'S3cr3tV4lue-from-env')
  onTestFinished(() => void vi.unstubAllEnvs())
  const target = `apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: t }
spec:
  className: '#[MYPW]'
  secretParams: [{ name: a, secretName: 'x#[MYPW]', secretKey: '#[MYPW]' }]
`
  await writeFile(join(folder, 'target.yaml'), target)
  await writeFile(join(folder, 'org.yaml'), org.replace("'1'", "'#[MYPW]'"))
  const { code, out } = await check('--config', folder)
  expect(code).toBe(1)
  expect(out.join('\n')).toContain(
    'no such secret (x#[MYPW]/#[MYPW] in the secrets folder, x#[MYPW]_#[MYPW] in the environment)',
  )
  expect(out.join('\n')).toContain('"#[MYPW]"')
  expect(out.filter((line) => /s3cr3t|v4lue/i.test(line))).toEqual([])
  await rm(join(folder, 'target.yaml'))
  await writeFile(
    join(folder, 'app.yaml'),
    `${application.replace('uri: /', "uri: '/#[MYPW]'")}`.replace("['*']", "['#[MYPW]']"),
  )
  vi.stubEnv('GATEHOUSE_URL', 'https://other.test')
  const checked = await check('--config', folder, '--production', '--data', join(folder, 'data'))
  expect(checked.out.join('\n')).toContain('#[MYPW]')
  expect(checked.out.filter((line) => /s3cr3t|v4lue/i.test(line))).toEqual([])
})

test('warnings alone: exit 0, or 1 with --strict', async () => {
  await writeFile(join(folder, 'app.yaml'), application)
  const { code, out } = await check('--config', folder)
  expect(code).toBe(0)
  expect(out).toContain('app.yaml:4:16: warning: spec.urls[0].azRules: without a rule this URL denies everyone')
  expect((await check('--config', folder, '--strict')).code).toBe(1)
})

test('JSON: the result and each problem with its place', async () => {
  await writeFile(join(folder, 'app.yaml'), application)
  const { code, out } = await check('--config', folder, '--output', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(out.join('\n'))).toEqual({
    valid: true,
    files: 1,
    kinds: { Application: 1 },
    problems: expect.arrayContaining([
      {
        level: 'warning',
        file: 'app.yaml',
        line: 4,
        column: 16,
        path: 'spec.urls[0].azRules',
        message: 'without a rule this URL denies everyone',
      },
    ]),
    served: 1,
    setAside: [],
    scripts: { total: 0, served: 0, unserved: [] },
    checks: [],
  })
  expect(JSON.parse((await check('--config', folder, '--output', 'json', '--strict')).out.join('\n')).valid).toBe(false)
})

test('an object that depends on another one is reported with its cause, in every format', async () => {
  const child = org.replace('name: o', 'name: child').replace("uuid: '1'", "uuid: '2', parent: '1'")
  await writeFile(join(folder, 'org.yaml'), `${org.replace('spec: {', 'spec: { color: red,')}---\n${child}`)
  expect((await check('--config', folder)).out.slice(1)).toEqual([
    '2 set aside because of Org "o" (org.yaml:4:9): Org "o", Org "child"',
    '0 objects served, 2 set aside',
  ])
  const json = JSON.parse((await check('--config', folder, '--output', 'json')).out.join('\n'))
  const cause = { object: 'Org "o"', at: 'org.yaml:4:9', message: 'spec.color: unknown key "color"' }
  expect(json).toMatchObject({
    valid: false,
    served: 0,
    setAside: [
      { kind: 'Org', name: 'o', cause: { ...cause, own: true } },
      { kind: 'Org', name: 'child', file: 'org.yaml', line: 6, cause: { ...cause, own: false } },
    ],
  })
  const message = 'Org "child" is set aside because of Org "o" (org.yaml:4:9): spec.color: unknown key "color"'
  expect((await check('--config', folder, '--output', 'github')).out.at(-1)).toMatch(
    /^::error file=.*org\.yaml,line=6,col=1,title=Gatehouse%3A set-aside::Org "child" is set aside/,
  )
  const sarif = JSON.parse((await check('--config', folder, '--output', 'sarif')).out.join('\n'))
  expect(sarif.runs[0].results.at(-1)).toMatchObject({
    ruleId: 'set-aside',
    level: 'error',
    message: { text: message },
  })
})

test('SARIF: a result for each problem, with a file that code scanners find', async () => {
  await mkdir(join(folder, 'two words'))
  await writeFile(join(folder, 'two words', 'org#1.yaml'), org.replace('uuid', 'uid'))
  const { code, out } = await check('--config', relative('.', folder), '--output', 'sarif')
  expect(code).toBe(1)
  const { version, runs } = JSON.parse(out.join('\n'))
  expect(version).toBe('2.1.0')
  expect(runs[0].tool.driver).toMatchObject({ name: 'Gatehouse', rules: [{ id: 'configuration' }] })
  expect(runs[0].results).toHaveLength(2)
  expect(runs[0].results[1]).toEqual({
    ruleId: 'configuration',
    ruleIndex: 0,
    level: 'error',
    message: { text: 'spec.uid: unknown key "uid" (did you mean "uuid"?)' },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: `${relative('.', folder)}/two%20words/org%231.yaml` },
          region: { startLine: 4, startColumn: 9 },
        },
      },
    ],
  })
})

test('SARIF: a production check is a rule, and an option is a place without a file', async () => {
  await writeFile(join(folder, 'org.yaml'), org)
  const { code, out } = await check('--config', folder, '--production', '--output', 'sarif', '--listen', '0.0.0.0:80')
  expect(code).toBe(1)
  const [{ tool, results }] = JSON.parse(out.join('\n')).runs
  for (const { ruleId, ruleIndex } of results) expect(tool.driver.rules[ruleIndex].id).toBe(ruleId)
  const listener = results.filter(({ locations }: { locations: object[] }) =>
    locations.some((place) => 'logicalLocations' in place),
  )
  expect(listener.length).toBeGreaterThan(0)
})

test('GitHub: no text of a configuration can write another command', async () => {
  await writeFile(join(folder, 'a,b:c.yaml'), org.replace('uuid:', '"x\\n::error::100%":'))
  const { code, out } = await check('--config', folder, '--output', 'github')
  expect(code).toBe(1)
  expect(out).toHaveLength(2)
  for (const line of out) expect(line).not.toMatch(/[\r\n]/)
  expect(out[1]).toMatch(/^::error file=.*\/a%2Cb%3Ac\.yaml,line=4,col=\d+,title=Gatehouse%3A configuration::/)
  expect(out[1]).toContain('100%25')
})

test('text: names and values cannot begin a line or reach the terminal as control characters', async () => {
  await writeFile(join(folder, 'x\n::warning ::y\u001b[31m.yaml'), org.replace('uuid:', '"x\\e[2J\\n::error::":'))
  const { code, out } = await check('--config', folder)
  expect(code).toBe(1)
  expect(out.join('')).toContain('x\ufffd::warning ::y\ufffd[31m.yaml:')
  for (const line of out) expect(line).not.toMatch(/\p{Cc}/u)
})

test.each(['xml', 'toString'])('--output %s is wrong usage', async (format) => {
  const { code, err } = await check('--config', folder, '--output', format)
  expect(code).toBe(2)
  expect(err[0]).toContain('--output must be one of text, json, sarif, github')
})

test('a folder without YAML gets a warning', async () => {
  expect(await check('--config', folder)).toEqual({
    code: 0,
    out: ['.:1:1: warning: there are no YAML files in this folder: nothing is served'],
    err: ['Checked 0 objects: 1 warning'],
  })
})

test('a key file without a key is reported before anything starts', async () => {
  await writeFile(join(folder, 'org.yaml'), org)
  await mkdir(join(folder, 'keys'))
  await writeFile(join(folder, 'keys', 'partner.pem'), 'hello')
  const { code, out } = await check('--config', folder)
  expect(code).toBe(1)
  expect(out).toEqual([
    'keys/partner.pem:1:1: holds neither a certificate nor a key in PEM form',
    '1 set aside because of its own errors: file keys/partner.pem',
    '1 object served, 1 set aside',
  ])
})

test('a missing secret is a warning, and an error for a gateway in production, which would set the object aside', async () => {
  const target = `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: crm }
spec:
  className: targets.Scim
  params: [{ name: url, value: https://crm.example.com }]
  secretParams: [{ name: token, secretName: crm, secretKey: token }]
`
  await writeFile(join(folder, 'crm.yaml'), target)
  expect(await check('--config', folder)).toMatchObject({ code: 0, out: [expect.stringContaining(': warning: ')] })
  const { code, out } = await check('--config', folder, '--production', '--data', folder)
  expect([code, out.at(-1)]).toEqual([1, '0 objects served, 1 set aside'])
})

test('an absent folder is a problem like the others', async () => {
  const absent = join(folder, 'absent')
  expect(await check('--config', absent)).toEqual({ code: 1, out: [`${absent}:1:1: does not exist`, nothing], err: [] })
})

test.each(['--listen=0.0.0.0:80', '--data'])('%s without --production is wrong usage', async (option) => {
  const { code, err } = await check('--config', folder, option, ...(option === '--data' ? [folder] : []))
  expect(code).toBe(2)
  expect(err[0]).toContain(`${option.split('=')[0]} requires --production`)
})

test.each([
  [['--listen', '8080'], '--listen: not HOST:PORT: 8080'],
  [['--metrics', 'on'], '--metrics: not HOST:PORT: on'],
  [['--trusted-proxy', '10.0.0.0/33'], '--trusted-proxy: not an address or CIDR range: 10.0.0.0/33'],
  [['--database', 'mysql://db'], '--database: a database address starts with'],
  [['--tls-cert', 'none.pem', '--tls-key', 'none.pem'], '--tls-cert: none.pem does not exist'],
])('%j is wrong usage, and the option is named', async (args, problem) => {
  const { code, err } = await check('--production', '--config', folder, ...args)
  expect(code).toBe(2)
  expect(err[0]).toContain(problem)
})

test.each(['GATEHOUSE_SECRET_KEY', 'GATEHOUSE_AUDIT_KEY'])('%s that is not a key is wrong usage', async (name) => {
  vi.stubEnv(name, 'abc')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { code, err } = await check('--production', '--config', folder)
  expect(code).toBe(2)
  expect(err[0]).toContain(`${name}: a key is 32 bytes in base64`)
})

test('wrong usage: exit 2', async () => {
  for (const args of [[], ['--config'], ['--config', folder, '--unknown'], ['--config', folder, 'extra']]) {
    const { code, err } = await check(...args)
    expect(code).toBe(2)
    expect(err.length).toBeGreaterThan(0)
  }
})

test('an audit sink or anchor that would write to the database is rejected, wherever the data folder is', async () => {
  const document = (kind: string, file: string) =>
    `apiVersion: gatehouse.dev/v1\nkind: ${kind}\nmetadata: { name: a }\nspec: { className: auditSinks.File, params: { file: "${file}" } }\n`
  await writeFile(join(folder, 'audit.yaml'), document('AuditSink', 'gatehouse.db-wal'))
  const { code, out } = await check('--config', folder)
  expect({ code, out }).toEqual({
    code: 1,
    out: [
      expect.stringMatching(
        /^audit.yaml:4:\d+: spec.params.file: "gatehouse.db-wal" leads to .*gatehouse.db, which is/,
      ),
      '1 set aside because of its own errors: AuditSink "a"',
      '0 objects served, 1 set aside',
    ],
  })
  const data = join(folder, 'data')
  const serving = ['--config', folder, '--production', '--data', data]
  await writeFile(join(folder, 'audit.yaml'), document('AuditAnchor', join(data, 'keys', 'anchors.jsonl')))
  expect((await check(...serving)).out[0]).toMatch(/leads to .*keys, which is the gateway’s own/)
  await writeFile(join(folder, 'audit.yaml'), document('AuditAnchor', join(folder, 'other.db-wal')))
  const elsewhere = await check(...serving, '--database', `sqlite:${join(folder, 'other.db')}`)
  expect(elsewhere.out).toEqual(
    expect.arrayContaining([expect.stringMatching(/leads to .*other.db, which is the gateway’s own/)]),
  )
})

test('scripts that use what is not served are counted at the end', async () => {
  const script = (name: string, code: string) =>
    `apiVersion: gatehouse.dev/v1\nkind: JavaScript\nmetadata: { name: ${name} }\nspec: { javascript: '${code}' }\n`
  await writeFile(join(folder, 'a.yaml'), script('a', 'function f() { return java.util.UUID.randomUUID() }'))
  expect(await check('--config', folder)).toMatchObject({ code: 0, out: [] })
  await writeFile(join(folder, 'b.yaml'), script('b', 'new java.io.File("x"); new java.io.File("y"); java.sql.Types.x'))
  await writeFile(join(folder, 'c.yaml'), script('c', 'function ('))
  await writeFile(
    join(folder, 'workflow.yaml'),
    `apiVersion: gatehouse.dev/v1
kind: Workflow
metadata: { name: w }
spec:
  label: w
  description: w
  inList: false
  orgId: x
  tasks:
    - taskType: customTask
      className: tasks.JavaScriptTask
      params: { javaScript: 'function doTask() { return new java.io.File("x") }' }
`,
  )
  const { code, out } = await check('--config', folder)
  expect(code).toBe(1)
  expect(out.at(-1)).toBe('scripts: 4, served: 1, not served: 3 (java.io.File 3, java.sql.Types 1)')
  const { scripts } = JSON.parse((await check('--config', folder, '--output', 'json')).out.join('\n'))
  expect(scripts).toEqual({
    total: 4,
    served: 1,
    unserved: [
      { name: 'java.io.File', times: 3 },
      { name: 'java.sql.Types', times: 1 },
    ],
  })
})
