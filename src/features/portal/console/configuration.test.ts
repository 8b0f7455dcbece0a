import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { buildConfiguration, type LoadResult } from '#config/load/load.ts'
import { ConfigurationReport } from '#server/configuration-report.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'

const admin = someone('root', ['people', 'admins'])
const params = { administrators: 'filter;(groups=admins)' }
const start = Date.UTC(2030, 0, 1)

const org = (name: string, more = ''): string => `apiVersion: openunison.tremolo.io/v1
kind: Org
metadata: { name: ${name} }
spec: { uuid: ${name}, description: d, label: l, azRules: [{ scope: filter, constraint: (uid=*) }]${more} }
`

const load = (...texts: readonly string[]): LoadResult =>
  buildConfiguration(
    {
      files: [
        { name: 'a.yaml', text: texts.join('---\n') },
        { name: 'values.yaml', text: 'PASSWORD: hunter2\n' },
      ],
      problems: [],
      keys: new Map(),
    },
    { folder: temporaryFolder(), catalog, environment: {} },
  )

async function open() {
  let now = start
  const report = new ConfigurationReport(load(org('one')), () => new Date(now))
  const { send } = await openMain({ params, loaded: report })
  const get = async (path = '') => (await send('GET', `/admin/configuration${path}`, undefined, admin)).body
  const explain = (body: unknown) => send('POST', '/admin/configuration/explain', body, admin)
  return { report, send, get, explain, tick: () => (now += 60_000) }
}

test('shows which configuration runs and lists its objects with their places, and no values', async () => {
  const { get, send } = await open()
  await expect(send('GET', '/admin/configuration')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const since = new Date(start).toISOString()
  expect(await get()).toEqual({
    running: { hash: expect.any(String), since },
    latest: { outcome: 'applied', time: since },
    served: 1,
    setAside: 0,
    setAsideBecause: [],
    problems: [],
    problemCount: 0,
  })
  const { objects } = await get('/objects')
  expect(objects).toEqual([
    { kind: 'Org', name: 'one', file: 'a.yaml', line: 1, status: 'loaded', running: true, errors: 0, warnings: 0 },
    { kind: 'values', file: 'values.yaml', line: 1, status: 'loaded', running: true, errors: 0, warnings: 0 },
  ])
  expect(JSON.stringify(objects)).not.toContain('hunter2')
})

test('an object that is set aside is shown with its cause', async () => {
  const { get, report } = await open()
  report.settled(load(org('one'), org('two', ', nonsense: 1'), org('three', ', parent: two')), 'applied')
  const { objects } = await get('/objects?status=set%20aside')
  expect(objects).toMatchObject([
    { name: 'two', running: false, errors: 1, setAside: expect.stringContaining('its own error (a.yaml:9:') },
    { name: 'three', running: false, errors: 0, setAside: expect.stringContaining('unknown key "nonsense"') },
  ])
  expect((await get('/objects?status=loaded')).objects).toHaveLength(2)
  const all = (await get('/objects')).objects.map(({ name = 'values' }: { name?: string }) => name)
  expect(all).toEqual(['two', 'three', 'one', 'values'])
  expect(await get()).toMatchObject({ served: 1, setAside: 2 })
})

test('what is set aside is grouped by cause, with the place to correct', async () => {
  const { get, report } = await open()
  report.settled(
    load(org('one', ', parent: gone'), org('two', ', nonsense: 1'), org('three', ', parent: two'), org('four')),
    'applied',
  )
  expect((await get()).setAsideBecause).toEqual([
    {
      object: 'Org "two"',
      place: expect.stringMatching(/^a\.yaml:9:\d+$/),
      message: expect.stringContaining('unknown key "nonsense"'),
      objects: [
        { kind: 'Org', name: 'two', file: 'a.yaml' },
        { kind: 'Org', name: 'three', file: 'a.yaml' },
      ],
      objectCount: 2,
    },
    {
      object: 'org "gone"',
      message: expect.stringContaining('gone'),
      objects: [{ kind: 'Org', name: 'one', file: 'a.yaml' }],
      objectCount: 1,
    },
  ])
})

test('a refused change is shown with its problems, and the running configuration stays the one that runs', async () => {
  const { get, report, tick } = await open()
  const { hash } = (await get()).running
  tick()
  report.settled(load(org('one', ', nonsense: 1'), org('two')), 'refused')
  const shown = await get()
  expect(shown.running).toEqual({ hash, since: new Date(start).toISOString() })
  expect(shown.latest).toEqual({ outcome: 'refused', time: new Date(start + 60_000).toISOString() })
  expect(shown.problems).toMatchObject([{ level: 'error', file: 'a.yaml', line: 4, path: 'spec.nonsense' }])
  const statuses = async (query: string) =>
    (await get(`/objects${query}`)).objects.map(({ name, status, running }: Record<string, unknown>) => [
      name,
      status,
      running,
    ])
  expect(await statuses('?kind=Org')).toEqual([
    ['one', 'errors', true],
    ['two', 'not loaded', false],
  ])
  expect(await statuses('?status=errors')).toEqual([['one', 'errors', true]])
  expect(await statuses('?name=TW')).toEqual([['two', 'not loaded', false]])
  tick()
  report.settled(load(org('two')), 'applied')
  expect(await statuses('?kind=Org')).toEqual([['two', 'loaded', true]])
  report.unread()
  expect((await get()).latest.outcome).toBe('unread')
})

test('an object whose file was removed in a refused change is still loaded', async () => {
  const { get, report } = await open()
  report.settled(load(org('two', ', nonsense: 1')), 'refused')
  expect((await get('/objects?kind=Org')).objects).toMatchObject([
    { name: 'two', status: 'errors', running: false },
    { name: 'one', status: 'loaded', running: true },
  ])
})

test('objects are paged, and wrong parameters are rejected', async () => {
  const { get, report } = await open()
  report.settled(load(org('a'), org('b'), org('c')), 'applied')
  const first = await get('/objects?limit=2')
  expect(first.objects.map(({ name }: { name: string }) => name)).toEqual(['a', 'b'])
  expect((await get(`/objects?limit=2&after=${first.next}`)).objects).toMatchObject([{ name: 'c' }, { kind: 'values' }])
  for (const query of ['?status=odd', '?after=x', '?format=xml', '?kinds=Org']) {
    await expect(get(`/objects${query}`)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
})

test('an explanation needs a method, a URL and a caller that exists', async () => {
  const { explain, send } = await open()
  const request = { method: 'GET', url: 'https://gw.example.com/x' }
  await expect(send('POST', '/admin/configuration/explain', request)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const wrong = [
    { ...request, url: 'nonsense' },
    { ...request, url: 'file:///etc/passwd' },
    { ...request, method: 'GE T' },
    { ...request, login: 'no-one' },
    { ...request, login: 'ann', dn: 'uid=ann' },
    { ...request, dn: '=' },
    { ...request, more: 1 },
    {},
  ]
  for (const body of wrong) await expect(explain(body)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  await expect(explain(request)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
})
