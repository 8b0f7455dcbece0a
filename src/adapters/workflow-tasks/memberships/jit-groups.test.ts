import { expect, test } from 'vitest'
import { MemoryGroups } from '#testing/targets/memory-groups.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, issuesOf, startWorkflows, userAfter } from '#testing/workflows/workflow-fixture.ts'

const former = 'com.tremolosecurity.provisioning.customTasks'
const map = (...groupMap: string[]) => customTask(`${former}.MapJitGroups`, { attributeName: 'memberOf', groupMap })

test('MapJitGroups adds and removes groups by the distinguished names of an attribute', async () => {
  const task = map('admins=cn=Admins,ou=x,o=y', 'admins=cn=root,o=y', 'staff=cn=staff,o=y', 'guests=cn=guests,o=y')
  const attributes = { memberOf: ['CN=admins, OU=x, O=y', 'cn=guests,o=y', 'not a name'] }
  const user = await userAfter([task], { attributes, groups: ['staff', 'own', 'guests'] })
  expect(user?.groups).toEqual(['own', 'guests', 'admins'])
})

test('MapJitGroups without the attribute takes every mapped group away', async () => {
  expect((await userAfter([map('staff=cn=staff,o=y')], { groups: ['staff', 'own'] }))?.groups).toEqual(['own'])
})

test('a rule of MapJitGroups that is not group=name is reported', () => {
  expect(issuesOf([map('staff', '=cn=x,o=y', 'staff=staff')])).toEqual([
    '0.params.groupMap.0: "staff" is not group=distinguished name',
    '0.params.groupMap.1: "=cn=x,o=y" is not group=distinguished name',
    '0.params.groupMap.2: "staff=staff" is not group=distinguished name',
  ])
})

test('MapAttributeToGroups takes the rules of GroupMetaData objects too', async () => {
  const groupMappings = [
    { group: 'admins', external: 'cn=admins,o=y' },
    { group: 'auditors', external: 'CN=Admins, O=y' },
    { group: 'builders', external: 'acme/Builders' },
    { group: 'guests', external: 'cn=guests,o=y' },
  ]
  const task = customTask('tasks.MapAttributeToGroups', {
    attributeName: 'memberOf',
    groupMap: 'staff=cn=staff,o=y',
    groupMetaData: 'true',
  })
  const attributes = { memberOf: ['CN=ADMINS,o=y', 'ACME/builders'] }
  const user = await userAfter([task], { attributes, groups: ['own', 'guests', 'staff'] }, { groupMappings })
  expect(user?.groups).toEqual(['own', 'admins', 'auditors', 'builders'])
  const bare = customTask('tasks.MapAttributeToGroups', { attributeName: 'memberOf' })
  expect(issuesOf([bare])).toEqual([
    '0.params.groupMap: parameter "groupMap" is required where groupMetaData is not true',
  ])
})

test('JITIgnoreGroups keeps only named groups, and only those the target has', async () => {
  const store = new MemoryTarget([{ userID: 'jj', groups: ['local', 'other'] }])
  const task = customTask(`${former}.JITIgnoreGroups`, { groupName: ['local', 'absent'], targetName: 'store' })
  const user = await userAfter([task], { userID: 'jj', groups: ['own'] }, { targets: { store } })
  expect(user?.groups).toEqual(['own', 'local'])
  const unknown = await userAfter([task], { userID: 'new', groups: ['own'] }, { targets: { store } })
  expect(unknown?.groups).toEqual(['own'])
})

test('JITBasicDBCreateGroups creates the missing groups of the user once, and reports them', async () => {
  const store = new MemoryGroups()
  store.addGroup('staff', { description: ['Old'] })
  const task = customTask(`${former}.JITBasicDBCreateGroups`, { targetName: 'store' })
  const { run, audit } = await startWorkflows({ workflows: { w: [task] }, targets: { store } })
  await run('w', { groups: ['staff', 'crew'] })
  await run('w', { groups: ['staff', 'crew'] })
  expect(store.listed()).toEqual([
    ['staff', { description: ['Old'] }, 1],
    ['crew', {}, 1],
  ])
  expect(audit.rows.map(({ action, value }) => `${action} ${value}`)).toEqual(['add crew'])
})
