import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, hasLookups, hasPasswords, type Target } from '#sdk/target/target.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import plugin from './plugin.ts'

const folder = mkdtempSync(join(tmpdir(), 'plugin-target-'))
const sample = readFileSync(new URL('../../../../examples/plugin-target/target.ts', import.meta.url), 'utf8')
const opened: Target[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((target) => target.close?.()))
})

function prepare(params: ParamValues) {
  const issues = noIssues()
  const ownFile = (path: string) => (path === join(folder, 'own-data') ? path : undefined)
  const context = { ...fakeParseContext(folder), ownFile }
  return { issues, context, prepared: plugin.prepare(fakeParams(params), issues, context) }
}

async function open(params: ParamValues, log: Logger = silentLogger): Promise<Target> {
  const { issues, prepared } = prepare(params)
  expect(issueTexts(issues.list)).toEqual([])
  const target = await prepared.create({
    ...fakeModuleHost(),
    name: 'crm',
    log,
    javaScript: (name) => (name === 'shared' ? 'function shared() { return "from shared" }' : undefined),
  })
  opened.push(target)
  return target
}

const names = { attributes: ['mail', 'cn', 'sn'], groups: ['a', 'b', 'c'] } as const

/** A plug-in with the required functions only, some of them replaced by the given ones. */
const minimal = (functions: string): string =>
  `function findUser(userID) { return null }
   function createUser() {} function syncUser() {} function deleteUser() {}
   ${functions}`

/** A plug-in that finds the result of the expression. */
const finding = (expression: string): string =>
  minimal(`function findUser(userID, attributes) { return ${expression} }`)

describe('the sample passes the suite', () => {
  targetConformance('plug-in', async () => ({ target: await open({ javaScript: sample }), close: async () => {} }), {
    test,
  })
})

/** The sample with its own groups, and versions. */
const complete = `${sample}
  const made = new Map()
  const reported = ({ name, ...rest }) => ({ ...rest, id: name, name, members: [] })
  export const keepsVersions = () => true
  export function addGroup(name, attributes) { made.set(name, { name, attributes, version: '1' }) }
  export function deleteGroup(name) {
    made.delete(name)
    for (const user of users.values()) if (user.groups.delete(name)) touch(user)
  }
  export function updateGroup(name, newName, attributes) {
    const { attributes: before, version } = made.get(name)
    made.delete(name)
    made.set(newName, { name: newName, attributes: { ...before, ...attributes }, version: String(Number(version) + 1) })
    for (const user of users.values()) if (user.groups.delete(name)) user.groups.add(newName)
  }
  const versions = new WeakMap()
  function touch(user) { versions.set(user, (versions.get(user) ?? 1) + 1) }`
  .replace('searchGroups().find(', '[...made.values()].map(reported).concat(searchGroups()).find(')
  .replace(
    'export function syncUser(user',
    'export function syncUser(user, ...rest) {\n  const text = JSON.stringify(plain(find(user.userID)))\n  write(user, ...rest)\n  const stored = find(user.userID)\n  if (JSON.stringify(plain(stored)) !== text) touch(stored)\n}\nfunction write(user',
  )
  .replace('groups: [...user.groups] }', 'groups: [...user.groups], version: String(versions.get(user) ?? 1) }')

describe('a plug-in with groups and versions passes the suite', () => {
  targetConformance('complete', async () => ({ target: await open({ javaScript: complete }), close: async () => {} }), {
    test,
  })
})

describe('the suite notices', () => {
  test.each([
    ['a target that removes when it should only add', 'addOnly ?', 'false ?'],
    ['a target that deletes nothing', 'users.delete(user.userID.toLowerCase())', ''],
    ['a target that takes letter case for another login', '.toLowerCase()', ''],
    ['a target that keeps groups', ': user.groups)', ': [...stored.groups, ...user.groups])'],
    [
      'a target that writes every attribute',
      'for (const name of attributes) {',
      "for (const name of ['mail', 'givenName', 'phone']) {",
    ],
  ])('%s', async (_, from, to) => {
    expect(sample).toContain(from)
    const broken = sample.replaceAll(from, to)
    const cases: (() => Promise<void>)[] = []
    targetConformance('broken', async () => ({ target: await open({ javaScript: broken }), close: async () => {} }), {
      test: (_name, run) => cases.push(run),
      lookups: true,
    })
    let failures = 0
    for (const run of cases) if (failures === 0) await run().catch(() => failures++)
    expect(failures).toBeGreaterThan(0)
  })
})

describe('parameters', () => {
  test.each([
    [{}, 'error params.javaScript: either "javaScript" or "module" is required, and not both'],
    [{ javaScript: 'function f(', module: '' }, /error params.javaScript: "javaScript": line 1: /],
    [{ javaScript: minimal('var a = Java.type("x.Y")') }, /^warning .*line 3: the Java type x.Y is not served/],
    [{ javaScript: 'x', module: 'x.js' }, /not both/],
    [
      { module: '../x.js' },
      'error params.module: "module": leads out of the configuration folder; such a file is named by its absolute path',
    ],
    [{ module: 'a/../../x.js' }, /leads out/],
    [{ module: 'x.json' }, /must end in/],
    [{ module: 'x.js', includeJs: ['a'] }, /goes with "javaScript" only/],
    [{ javaScript: 'x', timeoutSeconds: '0' }, /timeoutSeconds/],
    [{ javaScript: 'x', requireAllFunctions: 'maybe' }, /must be "true" or "false"/],
    [
      { javaScript: 'x', timoutSeconds: '5' },
      'warning params.timoutSeconds: "timoutSeconds" is handed to the plug-in; did you mean "timeoutSeconds"?',
    ],
    [{ javaScript: 'x', prototype: '5' }, /cannot be the name/],
  ] as [ParamValues, string | RegExp][])('%j', (params, message) => {
    const texts = issueTexts(prepare(params).issues.list)
    expect(texts).toHaveLength(1)
    if (typeof message === 'string') expect(texts[0]).toBe(message)
    else expect(texts[0]).toMatch(message)
  })

  test('a module is checked if its file can be read', () => {
    const issues = noIssues()
    const context = { ...fakeParseContext(folder), readFile: () => 'export function ( {' }
    plugin.prepare(fakeParams({ module: 'x.js' }), issues, context)
    expect(issueTexts(issues.list)).toEqual([expect.stringMatching(/^error params.module: "module": line 1: /)])
  })

  test('all others reach init, with the name', async () => {
    const lines: unknown[] = []
    const log: Logger = { ...silentLogger, info: (_, fields) => void lines.push(fields?.['text']) }
    const javaScript = minimal('function init(config, name) { console.log(JSON.stringify([config, name])) }')
    await open({ javaScript, url: 'https://x.test', list: ['a', 'b'] }, log)
    expect(lines).toEqual(['[{"url":["https://x.test"],"list":["a","b"]},"crm"]'])
  })

  test('code can be a TypeScript module, and include shared code', async () => {
    const typed = 'export async function findUser(userID: string): Promise<object> {'
    writeFileSync(join(folder, 'typed.ts'), sample.replace(/export function findUser\(.*/, typed))
    await open({ module: 'typed.ts' })
    const target = await open({
      javaScript: finding('({ userID: shared(), attributes: {}, groups: [] })'),
      includeJs: ['shared'],
    })
    const { request } = targetFixture(target, names)
    expect((await target.findUser('x', [], request))?.userID).toBe('from shared')
  })
})

test('code reads files beside it, but no secrets, keys, data or configuration', async () => {
  for (const sub of ['secrets/db', 'keys', 'data', '.gatehouse', 'own-data'])
    mkdirSync(join(folder, sub), { recursive: true })
  const secret = [
    'secrets/db/password',
    'keys/signing.key',
    'target.yaml',
    '.env',
    '.gatehouse/gatehouse.db',
    'own-data/x',
  ]
  const files = ['data/names.txt', 'beside.json', ...secret]
  for (const file of files) writeFileSync(join(folder, file), 'content')
  const javaScript = minimal(`
    async function init() {
      const { readFileSync } = await import('node:fs')
      for (const file of ${JSON.stringify([...files.map((file) => join(folder, file)), '/etc/hostname'])}) {
        try { console.log(readFileSync(file, 'utf8')) } catch (error) { console.log(error.code) }
      }
    }`)
  const lines: unknown[] = []
  await open({ javaScript }, { ...silentLogger, info: (_, fields) => void lines.push(fields?.['text']) })
  expect(lines).toEqual(['content', 'content', ...Array(7).fill('ERR_ACCESS_DENIED')])
})

describe('an unusable plug-in is rejected by check, or at the latest when it is created', () => {
  test.each([
    ['function findUser() {}', {}, /no function createUser, syncUser, deleteUser/],
    [minimal('function init() { throw new Error("no url") }'), {}, /init: no url/],
    [minimal(''), { requireAllFunctions: 'true' }, /no function init, shutdown/],
    [minimal(''), { enableUserLookups: 'true' }, /no function lookupUserByLogin/],
    [minimal('function searchUsers() {}'), {}, /lookupUserByLogin.*is required for look-ups/],
    [minimal(''), { enableCreateGroups: 'true' }, /addGroup/],
    [minimal('function addGroup() {} function deleteGroup() {}'), {}, /isGroupExists/],
    [
      sample.replace('export function init', 'export function isGroupIdUniqueId() { return 1 }\nexport function init'),
      {},
      /isGroupIdUniqueId is malformed/,
    ],
  ])('%#', async (javaScript, params, message) => {
    const { prepared } = prepare({ javaScript, ...params })
    await expect(prepared.create({ ...fakeModuleHost(), name: 'crm' })).rejects.toThrow(message)
  })

  test('missing functions and capabilities are known in advance, unless the code must run first', () => {
    const { issues } = prepare({ javaScript: minimal('function lookupUserByLogin() {}') })
    expect(issueTexts(issues.list)).toEqual([expect.stringMatching(/^error params\.javaScript: .*searchGroups/)])
    expect(prepare({ javaScript: sample }).prepared.lookups).toBe(true)
    expect(prepare({ javaScript: minimal('') }).prepared.lookups).toBe(false)
    expect(prepare({ javaScript: `${sample}\nexport * from './more.js'` }).prepared.lookups).toBeUndefined()
  })
})

describe('capabilities follow the functions', () => {
  test('the minimum', async () => {
    const target = await open({ javaScript: minimal('') })
    expect([hasLookups(target), hasGroups(target), hasPasswords(target)]).toEqual([false, false, false])
  })

  test('all', async () => {
    const javaScript = `${sample}
      const made = new Map([['old', {}]])
      export function setUserPassword(user, request) { request.audit({ action: 'replace', attribute: 'pw', value: user.password }) }
      export function addGroup(name, attributes, request) { made.set(name, attributes) }
      export function deleteGroup(name, request) { made.delete(name) }
      export const isGroupMembersUniqueIds = () => true
      export const isUniqueIdTremoloId = async () => false
      export const isGroupIdUniqueId = () => true`.replace(
      'searchGroups().find',
      'searchGroups().concat([...made.keys()].map(group)).find',
    )
    const target = await open({ javaScript })
    const { request, changes } = targetFixture(target, names)
    if (!hasLookups(target) || !hasGroups(target) || !hasPasswords(target)) throw new Error('capabilities missing')
    expect([target.groupMembersAreIds, target.userIdIsLogin, target.groupHasOwnId]).toEqual([true, false, true])
    await target.setUserPassword(userOf('ada'), 'secret', request)
    expect(changes).toEqual([{ subject: 'attribute', action: 'replace', attribute: 'pw' }])
    changes.length = 0
    await target.createGroup('new', {}, request)
    await target.createGroup('new', {}, request)
    expect(await target.findGroup('new')).toEqual({ id: 'new', name: 'new', members: [] })
    await target.deleteGroup('new', request)
    await target.deleteGroup('new', request)
    expect(await target.findGroup('new')).toBeUndefined()
    expect(changes).toEqual([
      { subject: 'entry', action: 'add', attribute: 'name', value: 'new' },
      { subject: 'entry', action: 'delete', attribute: 'name', value: 'new' },
    ])
  })

  test('new logins, new names and versions, if there are functions for them', async () => {
    const bare = await open({ javaScript: minimal('') })
    expect([bare.renamesUsers, bare.keepsVersions]).toEqual([false, false])
    const target = await open({ javaScript: complete })
    expect([target.renamesUsers, target.keepsVersions, hasGroups(target)]).toEqual([true, true, true])
    const fixed = await open({
      javaScript: finding("userID === 'ada' ? { userID, attributes: {}, groups: [] } : null"),
    })
    const { request } = targetFixture(fixed, names)
    const renaming = fixed.syncUser(userOf('ada'), syncOptions([], { newUserID: 'eve' }), request)
    await expect(renaming).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    const gone = fixed.syncUser(userOf('bob'), syncOptions([], { newUserID: 'eve' }), request)
    await expect(gone).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a group cannot be changed without a function for it', async () => {
    const javaScript = minimal(`const groups = new Map()
      function addGroup(name) { groups.set(name, 1) } function deleteGroup(name) { groups.delete(name) }
      function isGroupExists(name) { return groups.has(name) }`)
    const target = await open({ javaScript })
    const { request, changes } = targetFixture(target, names)
    if (!hasGroups(target)) throw new Error('no groups')
    await target.createGroup('crew', { description: ['x'] }, request)
    await target.createGroup('crew', { description: ['x'] }, request)
    expect(changes).toHaveLength(2)
    await target.updateGroup('crew', { newName: 'crew' }, request)
    await expect(target.updateGroup('crew', { newName: 'team' }, request)).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
    })
    await expect(target.updateGroup('none', {}, request)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(target.deleteGroup('crew', request, { expectedVersion: '1' })).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
  })

  test('lookups can be turned off', async () => {
    expect(hasLookups(await open({ javaScript: sample, enableUserLookups: 'false' }))).toBe(false)
  })
})

describe('answers are checked', () => {
  test.each([
    ['42', /must be an object/],
    ['[]', /must be an object/],
    ['({})', /userID must be a text/],
    ["({ userID: '', attributes: {}, groups: [] })", /userID/],
    ["({ userID: 'a', attributes: {} })", /groups must be a list of texts/],
    ["({ userID: 'a', attributes: { mail: 'x' }, groups: [] })", /attributes.mail must be a list of texts/],
    ["({ userID: 'a', attributes: { n: [1] }, groups: [] })", /attributes.n/],
    ["({ userID: 'a', attributes: [], groups: [] })", /attributes must be an object/],
    ["({ userID: 'a', attributes: {}, groups: [], id: 7 })", /id must be a text/],
    [`JSON.parse('{"userID":"a","groups":[],"attributes":{"__proto__":["x"]}}')`, /"__proto__" cannot be an attribute/],
  ])('findUser: %s', async (expression, message) => {
    const target = await open({ javaScript: finding(expression) })
    const { request } = targetFixture(target, names)
    const failure = target.findUser('a', ['mail'], request)
    await expect(failure).rejects.toMatchObject({
      code: 'TARGET_FAILED',
      publicText: 'A downstream system refused the change.',
      message: expect.stringMatching(message),
    })
  })

  test('searches', async () => {
    const target = await open({ javaScript: sample.replace('Array.from(users.values(), plain)', "[{ userID: 'a' }]") })
    if (!hasLookups(target)) throw new Error('no look-ups')
    await expect(target.searchUsers({ offset: 0, limit: 1 })).rejects.toThrow(/searchUsers\[0\]/)
  })
})

test('a search gets the text and the tree of the filter', async () => {
  const javaScript = sample.replace(
    'Array.from(users.values(), plain)',
    '{ throw new Error(_filterText + JSON.stringify(_filter)) }',
  )
  const target = await open({ javaScript })
  if (!hasLookups(target)) throw new Error('no look-ups')
  const filter: Filter = { kind: 'equal', attribute: 'mail', value: 'a*)(b' }
  await expect(target.searchUsers({ filter, offset: 0, limit: 1 })).rejects.toThrow(
    '(mail=a\\2a\\29\\28b){"kind":"equal","attribute":"mail","value":"a*)(b"}',
  )
  await expect(target.searchUsers({ offset: 0, limit: 1 })).rejects.toThrow('(objectClass=*)')
})

describe('changes', () => {
  const present = "{ userID, version: '7', attributes: { mail: ['a@x.test'], cn: ['A'] }, groups: ['a'] }"

  test("the audit has only the plug-in's entries, also those of a failed call", async () => {
    const target = await open({
      javaScript: minimal(`
        function createUser(user, attributes, request) {
          request.audit({ subject: 'entry', action: 'add', attribute: 'dn', value: user.userID })
          if (user.userID === 'bad') throw Object.assign(new Error('taken'), { code: 'conflict' })
        }`),
    })
    const { request, changes } = targetFixture(target, names)
    await target.createUser(userOf('ada', { mail: ['a@x.test'] }), names.attributes, request)
    const refused = target.createUser(userOf('bad'), names.attributes, request)
    await expect(refused).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(changes.map(({ attribute, value }) => [attribute, value])).toEqual([
      ['dn', 'ada'],
      ['dn', 'bad'],
    ])
  })

  test('a change that fails without an entry is not in the audit', async () => {
    const target = await open({ javaScript: minimal('function createUser() { throw new Error("no") }') })
    const { request, changes } = targetFixture(target, names)
    await expect(target.createUser(userOf('ada'), [], request)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(changes).toEqual([])
  })

  test('the plug-in sees present groups if they stay, and attributes by their given names', async () => {
    const target = await open({
      javaScript: minimal(`
        function findUser(userID) { return ${present} }
        function syncUser(user, addOnly, attributes, request) {
          throw new Error(JSON.stringify([user, addOnly, attributes, request.workflow.name, request.params]))
        }`),
    })
    const { request } = targetFixture(target, names)
    const user = userOf('ada', { MAIL: ['b@x.test'], cn: ['B'] }, ['c'])
    const sync = target.syncUser(user, syncOptions(['mail'], { keepGroups: true }), {
      ...request,
      params: { plain: 'x', function: () => 1 },
    })
    await expect(sync).rejects.toThrow(
      JSON.stringify([
        { userID: 'ada', attributes: { mail: ['b@x.test'] }, groups: ['a'] },
        false,
        ['mail'],
        'conformance',
        { plain: 'x' },
      ]),
    )
  })

  test('another version is rejected before any write', async () => {
    const target = await open({
      javaScript: minimal(`
        function findUser(userID) { return ${present} }
        function syncUser() { throw new Error('written') }`),
    })
    const { request } = targetFixture(target, names)
    const stale = target.syncUser(userOf('ada'), syncOptions([], { expectedVersion: '6' }), request)
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    const fresh = target.syncUser(userOf('ada'), syncOptions([], { expectedVersion: '7' }), request)
    await expect(fresh).rejects.toThrow(/written/)
  })

  test("the plug-in's log messages have its fields", async () => {
    const lines: unknown[] = []
    const target = await open({
      javaScript: minimal(`function createUser(user, attributes, request) {
        request.log('plain'); request.log.warn('careful', { userID: user.userID })
      }`),
    })
    const log: Logger = {
      ...silentLogger,
      info: (_, fields) => void lines.push(['info', fields]),
      warn: (_, fields) => void lines.push(['warn', fields]),
    }
    await target.createUser(userOf('ada'), [], { ...targetFixture(target, names).request, log })
    expect(lines).toEqual([
      ['info', { plugin: 'target "crm"', text: 'plain' }],
      ['warn', { plugin: 'target "crm"', text: 'careful', fields: { userID: 'ada' } }],
    ])
  })

  test('an invalid audit entry fails the call', async () => {
    const target = await open({
      javaScript: minimal(
        "function createUser(user, attributes, request) { request.audit({ subject: 'planet', action: 'add', attribute: 'x' }) }",
      ),
    })
    const { request } = targetFixture(target, names)
    await expect(target.createUser(userOf('ada'), [], request)).rejects.toThrow(/subject of an audit entry/)
  })
})
