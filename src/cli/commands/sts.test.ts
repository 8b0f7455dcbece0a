import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { stsCommand } from './sts.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-policy-'))
  writeFileSync(join(folder, 'cluster.yaml'), cluster)
  writeFileSync(join(folder, 'values.yaml'), values)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** As in a pod, which a build is not. */
const cluster = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: k8s }
spec: { className: targets.Kubernetes, params: { inCluster: 'true' } }
`
const values = `
sts:
  issuers:
    - name: github
      issuer: https://token.actions.githubusercontent.com
      audience: https://gatehouse.example.com
      claims: [repository, ref]
  endpoints:
    - name: cloud
      audience: cloud
      path: /sts/cloud
      azRules: [{ scope: filter, constraint: (&(namespace=team)(saname=web)) }]
      issuer: { host: issuer.example.com }
    - name: builds
      audience: cloud
      path: /sts/builds
      subjectIssuers: [github]
      azRules: [{ scope: filter, constraint: (&(repository=acme/app)(ref=refs/heads/main)) }]
      issuer: { host: builds.example.com }
      additionalAttributes: [repository]
    - name: short
      audience: cloud
      path: /sts/short
      preset: gcp
      azRules: [{ scope: filter, constraint: (namespace=team) }]
      issuer: { host: short.example.com }
    - name: granted
      audience: cloud
      path: /sts/granted
      grants: { namespaces: [team-*], namespaceLabels: { tier: gold }, serviceAccounts: [web*] }
      issuer: { host: granted.example.com }
`

/** As a team would apply it, with its namespace as the cluster has it. */
const grants = `
apiVersion: v1
kind: Namespace
metadata: { name: team-a, labels: { tier: gold } }
---
apiVersion: gatehouse.dev/v1
kind: TokenGrant
metadata: { name: web, namespace: team-a }
spec: { endpoint: granted, serviceAccounts: [web, web-2] }
---
apiVersion: gatehouse.dev/v1
kind: TokenGrant
metadata: { name: others, namespace: team-a }
spec: { endpoint: granted, serviceAccounts: [web-3, db] }
---
apiVersion: gatehouse.dev/v1
kind: TokenGrant
metadata: { name: web, namespace: team-b }
spec: { endpoint: granted, serviceAccounts: [web] }
`

async function run(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const io = { stdout: (line: string) => void out.push(line), stderr: (line: string) => void err.push(line) }
  const code = await stsCommand(args, io)
  return { code, out, err }
}

const file = (text: string): string => {
  const path = join(folder, 'policy-tests.yaml')
  writeFileSync(path, text)
  return path
}
const runTests = (text: string) => run('test', '--config', folder, file(text))

test('the example passes without a cluster', async () => {
  const { code, out, err } = await run(
    ...['test', '--config', 'examples/token-service', 'examples/token-service/policy-tests.yaml'],
  )
  expect(err).toEqual([])
  expect(out.at(-1)).toBe('6 tests: 6 passed, 0 failed')
  expect(code).toBe(0)
})

describe('expectations', () => {
  test('that hold are ok, of service accounts and of issuers', async () => {
    const { code, out, err } = await runTests(`
tests:
  - { endpoint: cloud, as: { namespace: team, saname: web, cluster: k8s }, allowed: true, subject: 'k8s:team:web' }
  - { endpoint: cloud, as: { namespace: team, saname: other }, allowed: false }
  - endpoint: builds
    as: { sub: 'repo:acme/app:ref:refs/heads/main', repository: acme/app, ref: refs/heads/main }
    allowed: true
    subject: github:repo:acme/app:ref:refs/heads/main
    claims: { repository: acme/app }
  - { endpoint: builds, as: { issuer: github, sub: x, repository: acme/app, ref: refs/heads/topic }, allowed: false }
`)
    expect(err).toEqual([])
    expect(out.at(-1)).toBe('4 tests: 4 passed, 0 failed')
    expect(out[0]).toMatch(/^ok {4}.*policy-tests\.yaml:3:5 {2}system:serviceaccount:team:web gets a token of cloud$/)
    expect(code).toBe(0)
  })

  test('that do not hold print the expected and the actual value, and the deciding clause', async () => {
    const { code, out } = await runTests(`
tests:
  - name: other is allowed
    endpoint: cloud
    as: { namespace: team, saname: other }
    allowed: true
  - { endpoint: cloud, as: { namespace: team, saname: web }, allowed: false }
  - endpoint: cloud
    as: { namespace: team, saname: web }
    allowed: true
    subject: team-web
    claims: { namespace: teem, saname: web, missing: [1] }
  - { endpoint: short, as: { namespace: team, saname: ${'x'.repeat(200)} }, allowed: true }
`)
    expect(code).toBe(1)
    expect(out.map((line) => line.replace(folder, '.'))).toEqual([
      'FAIL  ./policy-tests.yaml:3:5  other is allowed',
      '      expected a token, got none: no rule passes',
      '      rule fail  filter (&(namespace=team)(saname=web)): (saname=web) does not match: saname is "other"',
      'FAIL  ./policy-tests.yaml:7:5  system:serviceaccount:team:web gets no token of cloud',
      '      expected no token, got one for k8s:team:web',
      "      rule pass  filter (&(namespace=team)(saname=web)): the subject's attributes match",
      'FAIL  ./policy-tests.yaml:8:5  system:serviceaccount:team:web gets a token of cloud',
      '      subject: expected "team-web", got "k8s:team:web"',
      '      claim namespace: expected "teem", got "team"',
      '      claim missing: expected [1], got none',
      expect.stringMatching(/^FAIL .*:13:5/),
      expect.stringMatching(/expected a token, got none: The subject has 209 bytes, and gcp takes 127/),
      expect.stringMatching(/rule pass {2}filter \(namespace=team\)/),
      '4 tests: 0 passed, 4 failed',
    ])
  })
})

describe('an invalid file', () => {
  test.each<[string, string, RegExp[]]>([
    ['is not YAML', 'tests: [', [/policy-tests\.yaml:1:\d+: /]],
    ['is empty', '', [/no tests/]],
    ['has no tests', 'tests: []', [/policy-tests\.yaml:1:1: tests: /]],
    [
      'has other keys',
      'tests: [{ endpoint: cloud, as: {}, allowed: true, alowed: 1 }]',
      [/:1:\d+: tests\[0\]\.alowed: .*did you mean "allowed"/],
    ],
    [
      'lacks the expectation',
      'tests:\n  - endpoint: cloud\n    as: { namespace: a, saname: b }\n',
      [/:2:5: tests\[0\]\.allowed: is required/],
    ],
    [
      'names no endpoint',
      'tests: [{ endpoint: clod, as: {}, allowed: true }]',
      [/no token endpoint "clod" \(did you mean "cloud"\?\)/],
    ],
    [
      'describes half a workload',
      'tests: [{ endpoint: cloud, as: { namespace: a }, allowed: true }]',
      [/tests\[0\]\.as: "saname" is required/],
    ],
    [
      'misspells an attribute',
      'tests: [{ endpoint: cloud, as: { namespace: a, sanme: b }, allowed: true }]',
      [/no "sanme" \(did you mean "saname"\?\)/],
    ],
    [
      'names a cluster that the endpoint lacks',
      'tests: [{ endpoint: cloud, as: { namespace: a, saname: b, cluster: west }, allowed: false }]',
      [/takes no tokens of the cluster "west"/],
    ],
    [
      'expects a subject of nothing',
      'tests: [{ endpoint: cloud, as: { namespace: a, saname: b }, allowed: false, subject: x }]',
      [/tests\[0\]\.subject: is of a token/],
    ],
  ])('%s', async (_case, text, patterns) => {
    const { code, out, err } = await runTests(text)
    expect(out).toEqual([])
    for (const pattern of patterns) expect(err.join('\n')).toMatch(pattern)
    expect(code).toBe(1)
  })

  test('does not exist', async () => {
    const { code, err } = await run('test', '--config', folder, join(folder, 'none.yaml'))
    expect([code, err.join()]).toEqual([1, `gatehouse sts test: ${join(folder, 'none.yaml')} does not exist`])
  })
})

describe('wrong usage of sts', () => {
  test.each([
    [[], 'gatehouse sts: missing argument: one of explain, test, publish'],
    [['explian', 'cloud'], 'gatehouse sts: unknown action "explian" (did you mean "explain"?)'],
    [['explain'], 'gatehouse sts explain: missing argument: ENDPOINT'],
    [['test'], 'gatehouse sts test: missing argument: FILE'],
    [['explain', '--config', 'x', 'cloud'], /^gatehouse sts explain: --token FILE or --as NAME=VALUE is required/],
    [
      ['explain', '--config', 'x', 'cloud', '--token', 'x', '--as', 'a=b'],
      'gatehouse sts explain: --token and --as cannot be combined',
    ],
    [['explain', '--config', 'x', 'cloud', '--token', '/none'], 'gatehouse sts explain: --token: /none does not exist'],
    [['explain', '--config', 'x', 'cloud', '--token', '/tmp'], /--token: \/tmp is a folder, not a file/],
  ])('%j: the message names the problem', async (args, message) => {
    const { code, err } = await run(...args)
    expect(code).toBe(2)
    expect(err[0]).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
  })
})

describe('grants of a file', () => {
  const grantFile = () => {
    const path = join(folder, 'grants.txt')
    writeFileSync(path, grants)
    return path
  }
  const explainAs = (namespace: string, saname: string, ...more: string[]) =>
    run('explain', '--config', folder, ...more, '--as', `namespace=${namespace}`, '--as', `saname=${saname}`, 'granted')

  test('sts explain names the one that allows, and says that none does', async () => {
    const given = ['--grants', grantFile()]
    const allowed = await explainAs('team-a', 'web-2', ...given)
    expect([allowed.code, allowed.out.find((line) => line.startsWith('grant'))]).toEqual([
      0,
      expect.stringMatching(/pass {2}TokenGrant team-a\/web$/),
    ])
    // Outside the limits as a whole, of a namespace without the label, of another namespace, and without the file.
    const others =
      'team-a/others does not count: the endpoint "granted" honors no grants for service accounts named "db"'
    const place = 'team-b/web does not count: the endpoint "granted" honors no grants of the namespace "team-b"'
    for (const [namespace, account, more, reasons] of [
      ['team-a', 'web-3', given, [others]],
      ['team-b', 'web', given, [place]],
      ['other', 'web', given, []],
      ['team-a', 'web', [], []],
    ] as const) {
      const { code, out } = await explainAs(namespace, account, ...more)
      expect([code, out.find((line) => line.startsWith('grant'))]).toEqual([
        1,
        expect.stringContaining('fail  no TokenGrant that counts allows it'),
      ])
      expect(out.filter((line) => line.includes('does not count')).map((line) => line.trim())).toEqual(reasons)
    }
  })

  test('policy tests use them, and name the one that decided', async () => {
    const tests = file(`
tests:
  - { endpoint: granted, as: { namespace: team-a, saname: web }, allowed: true, subject: 'k8s:team-a:web' }
  - { endpoint: granted, as: { namespace: team-a, saname: web }, allowed: false }
  - { endpoint: granted, as: { namespace: team-a, saname: db }, allowed: true }
`)
    const { code, out } = await run('test', '--config', folder, '--grants', grantFile(), tests)
    expect(code).toBe(1)
    const text = out.join('\n')
    expect(text).toContain('1 passed, 2 failed')
    expect(text).toContain('grant pass  TokenGrant team-a/web')
    expect(text).toContain('expected a token, got none: no rule passes, and no grant')
    expect(text).toContain('team-a/others does not count: the endpoint "granted" honors no grants for service accounts')
  })

  test('sts explain names a file that cannot be read', async () => {
    const { code, err } = await explainAs('team-a', 'web', '--grants', join(folder, 'none.yaml'))
    expect([code, err.join(' ')]).toEqual([1, expect.stringContaining('none.yaml')])
  })
})

test('sts explain --token names a kubeconfig that does not exist', async () => {
  vi.stubEnv('KUBECONFIG', '/none/kubeconfig')
  const { code, err } = await run(
    'explain',
    '--config',
    'examples/token-service',
    'aws',
    '--token',
    join(folder, 'cluster.yaml'),
  )
  vi.unstubAllEnvs()
  expect([code, err.join()]).toEqual([1, expect.stringContaining('the kubeconfig #[KUBECONFIG] does not exist')])
})

describe('sts explain --as', () => {
  const explain = (...args: string[]) => run('explain', '--config', folder, ...args)

  test('needs no cluster and names the clause that failed', async () => {
    const { code, out, err } = await explain('cloud', '--as', 'namespace=team', '--as', 'saname=other')
    expect(err).toEqual([])
    expect(out).toContain(
      'rule         fail  filter (&(namespace=team)(saname=web)): (saname=web) does not match: saname is "other"',
    )
    expect(code).toBe(1)
    expect((await explain('cloud', '--as', 'namespace=team', '--as', 'saname=web')).code).toBe(0)
  })

  test('describes the subject of an issuer', async () => {
    const who = ['--as', 'sub=repo:acme/app', '--as', 'repository=acme/app', '--as', 'ref=refs/heads/main']
    const { code, out } = await explain('builds', ...who)
    expect(out).toContain(
      'accepts      tokens for https://gatehouse.example.com of github (https://token.actions.githubusercontent.com)',
    )
    expect(out).toContain('             sub: "github:repo:acme/app"')
    expect(code).toBe(0)
  })

  test('says what is missing or unknown', async () => {
    expect(await explain('cloud', '--as', 'namespace=a')).toMatchObject({
      code: 2,
      err: ['gatehouse sts explain: --as: "saname" is required', 'Run "gatehouse sts explain --help" for usage.'],
    })
    expect((await explain('cloud', '--as', 'namespace=a', '--as', 'podname=b')).err.join()).toMatch(/no "podname"/)
  })

  test('a file with too many tests is rejected by their number, in one short line', async () => {
    const text = `tests:\n${'  - { endpoint: cloud, as: {}, allowed: false }\n'.repeat(10_001)}`
    const { code, err } = await run('test', '--config', folder, file(text))
    expect(code).toBe(1)
    expect(err).toEqual([expect.stringMatching(/: tests: the list must not have more than 10000 entries$/)])
  })
})
