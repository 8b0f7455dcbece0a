import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import type { Catalog } from '#config/configuration/catalog.ts'
import { titleOf } from '#config/load/set-aside.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Named, Registry } from '#kernel/registry.ts'
import { createRuntime } from '#server/composition/runtime.ts'
import { createServices } from '#server/composition/services.ts'
import { openStorage } from '#server/composition/stores.ts'
import { keyIssuers } from '#server/composition/token-keys.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { startConfiguration } from '#server/reload.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { loadText } from '#testing/modules/check-text.ts'

const failure = 'no licence'
/** To create modules that fail. */
let attempts = 0

/** A module named `broken.NAME` is the module NAME, except that it can't be created. */
function breakable<D extends Named>(registry: Registry<D>): Registry<D> {
  const find = (name: string): D | undefined => {
    const found = registry.find(name.replace(/^broken\./, ''))
    return found === undefined || !name.startsWith('broken.') ? found : brokenModule(found)
  }
  return { ...registry, find }
}

const brokenModule = <D extends object>(module: D): D =>
  new Proxy(module, {
    get(whole, key, receiver) {
      const member: unknown = Reflect.get(whole, key, receiver)
      if (typeof member !== 'function' || (key !== 'prepare' && key !== 'parse')) return member
      return (...given: unknown[]) => ({
        ...member.apply(whole, given),
        create: () => {
          attempts++
          return Promise.reject(new Error(failure))
        },
      })
    },
  })

const { tasks, builtInTargets: _, ...registries } = catalog
const someBroken: Catalog = {
  ...(Object.fromEntries(
    Object.entries(registries).map(([slot, registry]) => [slot, breakable(registry as Registry<Named>)]),
  ) as unknown as Omit<Catalog, 'tasks'>),
  tasks: new Map([...tasks, ['brokenTask', brokenModule(tasks.get('addGroup') as never)]]),
}

async function start(text: string) {
  const folder = temporaryFolder()
  const storage = openStorage({ url: `sqlite:${join(folder, 'test.db')}`, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  const parts = { configFolder: folder, dataFolder: folder, clock: systemClock, log: silentLogger, environment: {} }
  const services = createServices({ storage, ...parts, workflowMetrics: createMetrics().workflows })
  const { runtime, served } = await startConfiguration(
    loadText(text, someBroken),
    (configuration) => {
      services.tokenKeys.configure(keyIssuers(configuration))
      return createRuntime(configuration, services)
    },
    { strict: false, served: [], log: silentLogger },
  )
  onTestFinished(() => runtime.close())
  return { runtime, served }
}

const object = (kind: string, name: string, spec: string): string =>
  `---\napiVersion: openunison.tremolo.io/v1\nkind: ${kind}\nmetadata: { name: ${name} }\nspec: ${spec}\n`
const workflow = (name: string, ...taskList: string[]): string =>
  object('Workflow', name, `{ tasks: [${taskList.join(', ')}] }`)
const task = (className: string): string =>
  `{ taskType: customTask, className: ${className}, params: { message: hello } }`
const application = (name: string, url: string): string =>
  object(
    'Application',
    name,
    `{ isApp: false, urls: [{ hosts: ['*'], uri: /${name}, azRules: [{ scope: dn, constraint: o=Tremolo }], ${url} }] }`,
  )
const filter = (className: string): string =>
  `filterChain: [{ className: ${className}, params: { issuer: 'http://127.0.0.1/x' } }]`
const custom = 'broken.UUIDGenerator'
const chain = object('AuthenticationChain', 'c', '{ level: 1, authMechs: [{ name: m, required: required }] }')
const mechanism = (className: string): string =>
  object('AuthenticationMechanism', 'm', `{ className: ${className}, uri: /auth/m }`)
const people = (more = ''): string => object('Target', 'people', `{ className: targets.Database${more} }`)
const provision = '{ taskType: provision, target: people, sync: true, attributes: [mail] }'

const kept = workflow('kept', task('tasks.PrintUserInfo')) + application('kept', filter('filters.DevelopmentIssuer'))

test.each<[string, string, readonly string[]]>([
  [
    'target',
    object('Target', 'people', '{ className: broken.Database }') + workflow('w', provision),
    ['Target "people"', 'Workflow "w"'],
  ],
  [
    'mapper of a target',
    people(`, targetAttributes: [{ name: mail, source: ${custom}, sourceType: custom }]`) + workflow('w', provision),
    ['Target "people"', 'Workflow "w"'],
  ],
  ['task', workflow('w', '{ taskType: brokenTask, name: g }'), ['Workflow "w"']],
  [
    'custom task, and a workflow that calls it',
    workflow('w', task('broken.PrintUserInfo')) + workflow('caller', '{ taskType: callWorkflow, name: w }'),
    ['Workflow "w"', 'Workflow "caller"'],
  ],
  [
    'custom task in a branch',
    workflow(
      'w',
      `{ taskType: ifAttrExists, name: mail, onSuccess: [{ taskType: ifAttrExists, name: sn, onFailure: [${task('broken.PrintUserInfo')}] }] }`,
    ),
    ['Workflow "w"'],
  ],
  [
    'mapper of a task',
    workflow(
      'w',
      `{ taskType: mapping, strict: true, map: [{ targetAttributeName: id, targetAttributeSource: ${custom}, sourceType: custom }] }`,
    ),
    ['Workflow "w"'],
  ],
  [
    'source of a dynamic workflow',
    people() +
      object(
        'Workflow',
        'w',
        '{ inList: true, orgId: o, dynamicConfiguration: { dynamic: true, className: broken.dynamicWorkflows.JavaScript, params: { javaScript: "function generateWorkflows() { return [] }" } }, tasks: [] }',
      ) +
      object('Org', 'o', '{ uuid: o, label: O }'),
    ['Workflow "w"'],
  ],
  [
    'directory insert',
    object('DirectoryInsert', 'i', "{ className: broken.Database, suffix: 'ou=people,o=Tremolo' }"),
    ['DirectoryInsert "i"'],
  ],
  [
    'authorization',
    object('CustomAuthorization', 'a', '{ className: broken.AlwaysFail }') +
      application('x', filter('filters.DevelopmentIssuer')).replace(
        'scope: dn, constraint: o=Tremolo',
        'scope: custom, constraint: a',
      ),
    ['CustomAuthorization "a"', 'Application "x"'],
  ],
  [
    'mechanism of a chain',
    mechanism('broken.Anonymous') + chain + application('x', `authChain: c, ${filter('filters.DevelopmentIssuer')}`),
    ['AuthenticationChain "c"', 'Application "x"'],
  ],
  ['filter', application('x', filter('broken.DevelopmentIssuer')), ['Application "x"']],
  [
    'claim of an identity provider',
    mechanism('auth.Anonymous') +
      chain +
      application(
        'x',
        `idp: { className: idp.OpenIDConnect, params: {}, mappings: { strict: true, map: [{ targetAttributeName: sub, targetAttributeSource: uid, sourceType: user }, { targetAttributeName: id, targetAttributeSource: ${custom}, sourceType: custom }] }, trusts: [] }`,
      )
        .replace('uri: /x', 'uri: /auth/idp/x')
        .replace(
          'isApp: false',
          "isApp: false, cookieConfig: { sessionCookieName: x, domain: '*', timeout: 900, cookiesEnabled: true }",
        ),
    ['Application "x"'],
  ],
  [
    'claim of a token endpoint',
    `${object('Target', 'k8s', "{ className: targets.Kubernetes, params: { url: 'https://127.0.0.1:1', token: x } }")}### values.yaml
sts:
  endpoints:
    - name: cloud
      audience: https://consumer.example.com
      path: /sts/cloud
      azRules: [{ scope: filter, constraint: (namespace=a) }]
      issuer: { host: issuer.example.com }
      additionalAttributes: [{ name: id, source: ${custom}, sourceType: custom }]
### z.yaml
`,
    ['token endpoint "cloud"'],
  ],
  [
    'job',
    object(
      'OUJob',
      'j',
      '{ className: broken.CleanUp, cronSchedule: { seconds: "0", minutes: "0", hours: "*", dayOfMonth: "*", month: "*", dayOfWeek: "?", year: "*" }, params: [] }',
    ),
    ['OUJob "j"'],
  ],
  ['notifier', object('Notifier', 'n', '{ className: broken.None }'), ['Notifier "n"']],
  [
    'report',
    object(
      'Report',
      'r',
      '{ name: r, orgId: o, parameters: {}, dataFields: [id], sql: select nothing as id from report_approvals }',
    ) + object('Org', 'o', '{ uuid: o, label: O }'),
    ['Report "r"'],
  ],
])('what cannot be created is set aside with what needs it, and the rest is served: %s', async (_, text, expected) => {
  const { runtime, served } = await start(text + kept)
  const aside = served.found.filter(({ cause }) => cause !== undefined)
  expect(aside.map(titleOf)).toEqual(expected)
  expect(aside[0]?.cause?.message).toMatch(/^(?:sts: )?cannot be created: /)
  expect(runtime.configuration.workflows.has('kept')).toBe(true)
  expect(runtime.routes.find('any.example.com', '/kept')?.application.setAside).toBeUndefined()
  const closed = runtime.configuration.applications.find(({ name }) => name === 'x')
  expect(closed?.setAside !== undefined).toBe(expected.includes('Application "x"'))
})

test('a module that cannot be created is tried once in each attempt, however many there are', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`)
  const many = (one: (name: string) => string): string => names.map(one).join('')
  const text = [
    many((name) => object('Target', `t${name}`, '{ className: broken.Database }')),
    many((name) => workflow(`w${name}`, task('broken.PrintUserInfo'))),
    many((name) => application(`a${name}`, filter('broken.DevelopmentIssuer'))),
    many((name) => object('Notifier', `m${name}`, '{ className: broken.None }')),
  ].join('')
  attempts = 0
  const { served } = await start(kept + text)
  expect(served.notCreated).toHaveLength(4 * names.length)
  expect(attempts).toBe(4 * names.length)
})
