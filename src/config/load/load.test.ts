import { describe, expect, test } from 'vitest'
import { checkText, loadText } from '#testing/modules/check-text.ts'
import { fakeCatalog } from '#testing/modules/fake-catalog.ts'

const good = `
### application.yaml
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: people, namespace: openunison, labels: { a: b } }
spec:
  azTimeoutMillis: 5000
  cookieConfig: { cookiesEnabled: true, sessionCookieName: s, domain: '#[OU_HOST]', timeout: 60, sameSite: Ignore }
  urls:
    - hosts: ['#[OU_HOST]', '*']
      uri: /scim/
      authChain: api
      azRules: [{ scope: filter, constraint: (login=x) }]
      results: { auFail: none, azFail: "" }
      filterChain:
        - className: com.example.Gateway
          params: { workflowName: sync, lookupTarget: store, maps: [mail], reads: [mail] }
          secretParams: [{ name: token, secretName: gate-way, secretKey: the.token }]
### rest.yaml
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: token }
spec: { className: auth.Token, uri: /auth/token, init: { cache: 5 }, secretParams: [] }
---
apiVersion: gatehouse.dev/v1
kind: AuthenticationChain
metadata: { name: api }
spec:
  level: 35
  root: o=Data
  authMechs:
    - { name: token, required: required, params: { realm: x } }
    - { name: token, required: optional, params: { realm: y } }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: sync }
spec:
  orgId: internal-does-not-exist
  tasks: |-
    - taskType: customTask
      className: com.tremolosecurity.provisioning.customTasks.PrintUserInfo
      params: { message: '#[OU_HOST]' }
    - { taskType: provision, target: store, attributes: [mail] }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: store }
spec:
  className: targets.Memory
  params:
    - { name: tag, value: one }
    - { name: limit, value: 15 }
    - { name: tag, value: two }
---
apiVersion: openunison.tremolo.io/v1
kind: ResultGroup
metadata: { name: none }
spec: [{ resultType: header, source: static, value: a=b }]
### values.yaml
OU_HOST: Example.com
`
const environment = { GATE_WAY_THE_TOKEN: 's3cret' }

describe('a valid configuration', () => {
  const { configuration, issues } = loadText(good, fakeCatalog, { environment, strictSecrets: true })

  test('has no issues', () => expect(issues).toEqual([]))

  test('keeps names, namespaces and places', () => {
    const application = configuration?.applications[0]
    expect(application).toMatchObject({
      name: 'people',
      namespace: 'openunison',
      at: 'application.yaml:3:13',
      azTimeoutMillis: 5000,
      cookies: { name: 's', domain: 'Example.com', secure: true, httpOnly: true, sameSite: 'Lax', idleSeconds: 60 },
    })
    expect(application?.urls[0]).toMatchObject({
      hosts: ['example.com', '*'],
      uri: '/scim/',
      chain: 'api',
      results: { auFail: 'none', azFail: undefined },
    })
    expect(application?.urls[0]?.filters.map(({ className }) => className)).toEqual(['filters.Gateway'])
  })

  test('a chain has its level and its root', () => {
    expect(configuration?.chains.get('api')).toMatchObject({ level: 35, root: 'o=Data' })
  })

  test('only the word "required" makes a mechanism required', () => {
    expect(configuration?.chains.get('api')?.mechanisms.map(({ required }) => required)).toEqual([true, false])
  })

  test('the same content has the same hash, and another host has another', () => {
    const again = loadText(good, fakeCatalog, { environment, strictSecrets: true })
    expect(again.hash).toBe(configuration?.hash)
    expect(loadText(good, fakeCatalog, { environment: { ...environment, OU_HOST: 'x' } }).hash).not.toBe(again.hash)
    const otherSecret = loadText(good, fakeCatalog, { environment: { GATE_WAY_THE_TOKEN: 'other' } })
    expect(otherSecret.hash).not.toBe(again.hash)
  })

  test('a workflow has the same hash for any order of its keys', () => {
    const hashOf = (spec: string) =>
      loadText(
        `apiVersion: gatehouse.dev/v1\nkind: Workflow\nmetadata: { name: w }\nspec: ${spec}\n`,
        fakeCatalog,
      ).configuration?.workflows.get('w')?.hash
    const first = hashOf('{ label: a, tasks: [{ taskType: set, names: [x] }] }')
    expect(first).toBeDefined()
    expect(hashOf('{ tasks: [{ names: [x], taskType: set }], label: a }')).toBe(first)
    expect(hashOf('{ label: a, tasks: [{ taskType: set, names: [y] }] }')).not.toBe(first)
  })
})

describe('secrets', () => {
  test('a missing one is a warning for a check and an error for a server', () => {
    const place = 'application.yaml:16:41'
    const path = 'spec.urls[0].filterChain[0].secretParams[0].secretName'
    const reason = 'no such secret (gate-way/the.token in the secrets folder, GATE_WAY_THE_TOKEN in the environment)'
    expect(checkText(good, fakeCatalog)).toEqual([
      `${place}: warning: ${path}: ${reason}; without it, serve sets this object aside`,
    ])
    const strict = loadText(good, fakeCatalog, { strictSecrets: true })
    expect(strict.configuration?.applications).toMatchObject([{ name: 'people', urls: [{ rules: [], filters: [] }] }])
    expect(strict.issues).toMatchObject([{ level: 'error', message: reason }])
  })

  test("a name can't leave the folder", () => {
    const hostile = good.replace('gate-way', '..')
    expect(checkText(hostile, fakeCatalog).join()).toContain('".." cannot be the name of a secret or of its key')
  })
})

describe('one mistake does not hide the next', () => {
  test('after an unknown key or a wrong type the rest is still checked', () => {
    const bad = good
      .replace('azTimeoutMillis: 5000', 'azTimeoutMilis: 5000')
      .replace('timeout: 60', 'timeout: soon')
      .replace('workflowName: sync', 'workflowName: synk')
    const lines = checkText(bad, fakeCatalog, { environment })
    expect(lines).toEqual([
      'application.yaml:5:3: spec.azTimeoutMilis: unknown key "azTimeoutMilis" (did you mean "azTimeoutMillis"?)',
      'application.yaml:6:85: spec.cookieConfig.timeout: expected a number, found text',
      'application.yaml:15:21: spec.urls[0].filterChain[0].params.workflowName: no workflow named "synk" (did you mean "sync"?)',
    ])
  })
})

describe('hostile YAML', () => {
  const workflow = (tasks: string) =>
    `apiVersion: gatehouse.dev/v1\nkind: Workflow\nmetadata: { name: w }\nspec:\n  tasks: ${tasks}\n`

  test('keys of the prototype are rejected', () => {
    const lines = checkText(workflow('[{ taskType: set, __proto__: { x: 1 } }]'), fakeCatalog)
    expect(lines.join()).toContain('"__proto__" is not allowed as a key')
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false)
  })

  test('aliases that multiply are bounded', () => {
    const levels = Array.from({ length: 30 }, (_, i) =>
      i === 0 ? 'l0: &l0 [x]' : `l${i}: &l${i} [*l${i - 1}, *l${i - 1}]`,
    )
    expect(checkText(`${levels.join('\n')}\n`, fakeCatalog).join()).toContain('is nested too deep or too large')
  })

  test('an alias to itself is bounded', () => {
    expect(checkText('a: &a [*a]\n', fakeCatalog).join('\n')).not.toBe('')
  })

  test('deep nesting is an error, not a crash', () => {
    expect(checkText(workflow('['.repeat(5000)), fakeCatalog).length).toBeGreaterThan(0)
  })

  test('subtasks are bounded', () => {
    let tasks = '[]'
    for (let i = 0; i < 25; i++) tasks = `[{ taskType: when, name: a, onSuccess: ${tasks} }]`
    expect(checkText(workflow(tasks), fakeCatalog).join()).toContain('tasks are nested deeper than 20')
  })
})

describe('the directory', () => {
  const insert = (name: string, suffix: string, order = '') => `
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: ${name} }
spec: { className: directory.Place, suffix: "${suffix}", ${order} mapping: { mail: email } }
`
  const load = (text: string, environment = {}) => loadText(text, fakeCatalog, { environment })

  test('inserts are in order, below a root that values may name', () => {
    const objects = [
      insert('b', 'ou=b,#[directoryRoot]'),
      insert('z', 'ou=z,o=X', 'order: 0,'),
      insert('a', 'o=x', 'order: 5,'),
    ]
    const { configuration, issues } = load(`### values.yaml\ndirectoryRoot: o=X\n### a.yaml${objects.join('---')}`)
    expect(issues).toEqual([])
    expect(configuration?.directoryRoot.toString()).toBe('o=X')
    expect(configuration?.inserts.map(({ name, suffix }) => `${name} ${suffix}`)).toEqual([
      'b ou=b,o=X',
      'z ou=z,o=X',
      'a o=x',
    ])
    expect(configuration?.inserts[0]?.mapping).toEqual(new Map([['mail', 'email']]))
  })

  test('the root is o=Tremolo by default, and must be a name', () => {
    expect(load(insert('a', 'ou=a,o=Tremolo')).configuration?.directoryRoot.toString()).toBe('o=Tremolo')
    expect(load(insert('a', 'ou=a,o=E'), { directoryRoot: 'o=E' }).configuration?.directoryRoot.toString()).toBe('o=E')
    for (const wrong of ['nonsense', '""']) {
      expect(checkText(`### values.yaml\ndirectoryRoot: ${wrong}\n`, fakeCatalog).join()).toContain(
        'values.yaml:1:1: directoryRoot',
      )
    }
  })
})

describe('the public URL', () => {
  const url = (values: string, listenUrl?: string, environment: Record<string, string> = {}) => {
    const text = `### values.yaml\n${values}\n`
    const { configuration } = loadText(text, fakeCatalog, {
      environment,
      ...(listenUrl === undefined ? {} : { listenUrl }),
    })
    return configuration?.publicUrl
  }
  const listener = 'http://0.0.0.0:8080'

  test('comes from the environment, then from a values document, then from the listener', () => {
    expect(url('GATEHOUSE_URL: https://a.example', listener, { GATEHOUSE_URL: 'https://b.example' })).toBe(
      'https://b.example',
    )
    expect(url('GATEHOUSE_URL: https://a.example', listener)).toBe('https://a.example')
    expect(url('OTHER: x', listener)).toBe(listener)
    expect(url('OTHER: x')).toBeUndefined()
  })

  test('comes from the listener if both are loopback addresses', () => {
    expect(url('GATEHOUSE_URL: http://localhost:8080', 'http://127.0.0.1:9080')).toBe('http://127.0.0.1:9080')
    expect(url('GATEHOUSE_URL: http://localhost:8080', listener)).toBe('http://localhost:8080')
  })
})
