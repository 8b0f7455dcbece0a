import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { unknownClass } from '#config/context/unknown-class.ts'
import { openUnisonClasses, openUnisonPrefix } from '#openunison/class-list.ts'
import { openUnisonRows } from '../docs/openunison-page.ts'

const rows = openUnisonRows()
const everyClass = Object.values(openUnisonClasses).flat()
const { tasks: _, builtInTargets: __, ...registries } = catalog

test('every slot of the table is one that the page finds out about', () => {
  expect([...rows.keys()].sort()).toEqual(Object.keys(openUnisonClasses).sort())
})

test('a class is listed once in its slot, without the prefix that all have', () => {
  for (const [slot, classes] of Object.entries(openUnisonClasses)) {
    const names = classes.map(({ name }) => name)
    expect([slot, names.length]).toEqual([slot, new Set(names).size])
    expect(names.filter((name) => name.startsWith(openUnisonPrefix))).toEqual([])
  }
})

test('the page says what to use for every class that is set aside', () => {
  const silent = Array.from(rows.values())
    .flat()
    .filter(({ status, remark }) => status === 'set aside' && remark === '')
  expect(silent).toEqual([])
})

test('classes whose work the gateway does itself are built in, with the reason', () => {
  const found = Array.from(rows.values()).flat()
  for (const name of [
    'proxy.auth.LogUserAgentAuth',
    'provisioning.customTasks.ClearPasswordResets',
    'provisioning.jobs.WaitForJob',
    'provisioning.listeners.UpdateApprovalAZListener',
  ]) {
    const row = found.find((one) => one.name === name)
    expect(row).toMatchObject({ name, status: 'built in', remark: expect.stringMatching(/no effect|not needed/) })
  }
})

test('a class is called built in only if the loader accepts it', () => {
  const marked = everyClass.filter(({ isBuiltIn }) => isBuiltIn === true).map(({ name }) => name)
  const shown = Array.from(rows.values())
    .flat()
    .filter(({ status }) => status === 'built in')
  expect(shown.map(({ name }) => name).sort()).toEqual(marked.sort())
})

test('without the areas that are left to other products, nine of ten documented uses are served or built in', () => {
  const inside = Array.from(rows.values())
    .flat()
    .filter(({ isOutside }) => !isOutside)
  const uses = (some: typeof inside): number => some.reduce((total, { uses: count = 0 }) => total + count, 0)
  const working = inside.filter(({ status }) => status === 'served' || status === 'built in')
  expect(uses(working) / uses(inside)).toBeGreaterThanOrEqual(0.9)
})

test('what belongs to the groups and sessions of a live namespace is served', () => {
  const found = Array.from(rows.values()).flat()
  for (const name of [
    'proxy.auth.AddPortalRolesToUserData',
    'proxy.filters.SetupEndSessionWatch',
    'proxy.filters.SetupGroupMetadataWatch',
    'scalejs.LoadClusterGroups',
  ]) {
    expect(found.find((one) => one.name === name)).toMatchObject({ name, status: 'served' })
  }
})

test('the modules that texts recommend exist', () => {
  const known = new Set(Object.values(registries).flatMap((registry) => registry.names()))
  const named = everyClass.flatMap(({ instead = '' }) =>
    Array.from(instead.matchAll(/`([a-zA-Z]+\.[A-Z]\w+)`/g), ([, name = '']) => name),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((name) => !known.has(name))).toEqual([])
})

test('the hint for a class that is set aside says so and what to use, by the whole name and by its end', () => {
  const { customTasks, filters } = catalog
  const git = 'com.tremolosecurity.provisioning.tasks.PushToGit'
  const message = 'is a class of OpenUnison that is not served; use a pipeline of the Git server'
  expect(unknownClass(customTasks, git)).toContain(`"${git}" ${message}`)
  expect(unknownClass(customTasks, 'PushToGit')).toContain(`"PushToGit" ${message}`)
  expect(unknownClass(filters, git)).toContain('it is not a "filter", but a "custom task"')
  expect(unknownClass(filters, 'com.example.PushToGit')).toContain('no filter named "com.example.PushToGit"')
})
