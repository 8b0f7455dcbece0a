import { beforeEach, expect, test } from 'vitest'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { type GroupStore, reconcileGroups, type StoredGroup } from './group-reconciler.ts'
import { inQueue } from './user-reconciler.ts'

let groups: Map<string, Group>
let changes: string[]

const store: GroupStore<StoredGroup> = {
  read: async (name) => {
    const group = groups.get(name)
    return group && { group }
  },
  create: async (name, attributes, call) => {
    groups.set(name, { id: `id of ${name}`, name, members: [], attributes, version: '1' })
    return call.changes
  },
  write: async ({ group }, call) => {
    groups.delete(group.name)
    const attributes = group.attributes?.clone()
    for (const [name, values] of call.attributes) attributes?.set(name, values)
    const changed = { ...group, name: call.newName, version: String(Number(group.version) + 1) }
    groups.set(call.newName, attributes === undefined ? changed : { ...changed, attributes })
    return call.changes
  },
  delete: async ({ group }, call) => {
    groups.delete(group.name)
    return call.changes
  },
}

const request = {
  workflow: { id: 'w', name: 'join' },
  idempotencyKey: 'step',
  requestor: 'eve',
  params: {},
  log: silentLogger,
  audit: ({ action, attribute, value }: TargetChange) => void changes.push(`${action} ${attribute} ${value}`),
}
const open = (more: Partial<GroupStore<StoredGroup>> = {}) => reconcileGroups(inQueue({ ...store, ...more }))

beforeEach(() => {
  groups = new Map()
  changes = []
})

test('create is idempotent, and a conflict for other attributes or where the group must be new', async () => {
  const { createGroup } = open()
  await createGroup('crew', { description: ['x'] }, request)
  await createGroup('crew', { description: ['x'] }, request)
  await createGroup('crew', { description: ['x'] }, request, { mustBeNew: true })
  await expect(createGroup('crew', { description: ['y'] }, request)).rejects.toMatchObject({ code: 'CONFLICT' })
  const strict = open({ requiresNew: true })
  await expect(strict.createGroup('crew', { description: ['x'] }, request, { mustBeNew: true })).rejects.toMatchObject({
    code: 'CONFLICT',
  })
  expect(changes).toEqual(['add name crew', 'add description x'])
})

test('create succeeds when another writer created the same group at the same time', async () => {
  const create: (typeof store)['create'] = async (name, attributes, call) => {
    await store.create(name, attributes, call)
    throw new GatewayError('CONFLICT', 'taken')
  }
  await open({ create, rereadsConflicts: true }).createGroup('crew', {}, request)
  await expect(open({ create }).createGroup('team', {}, request)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(changes).toEqual([])
})

test('update changes the differences, renames to a free name, and checks the version', async () => {
  const { createGroup, updateGroup } = open()
  await expect(updateGroup('crew', {}, request)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await createGroup('crew', {}, request)
  await createGroup('other', {}, request)
  changes.length = 0
  await expect(updateGroup('crew', { newName: 'other' }, request)).rejects.toMatchObject({ code: 'CONFLICT' })
  await updateGroup('crew', { newName: 'team', attributes: { description: ['x'] } }, request)
  await updateGroup('team', { attributes: { description: ['x'] } }, request)
  await expect(updateGroup('team', { expectedVersion: '1' }, request)).rejects.toMatchObject({
    code: 'VERSION_MISMATCH',
  })
  expect(changes).toEqual(['replace name team', 'add description x'])
})

test('an update that only expects a version still writes if the target returns a new version', async () => {
  await open().createGroup('crew', {}, request)
  await open().updateGroup('crew', { expectedVersion: '1' }, request)
  expect(groups.get('crew')?.version).toBe('1')
  await open({ touches: true }).updateGroup('crew', { expectedVersion: '1' }, request)
  expect(groups.get('crew')?.version).toBe('2')
})

test('delete is idempotent and cleans up', async () => {
  const cleaned: string[] = []
  const target = open({ cleanUp: async (name) => void cleaned.push(name) })
  await target.createGroup('crew', {}, request)
  await target.deleteGroup('crew', request)
  await target.deleteGroup('crew', request)
  expect(changes).toEqual(['add name crew', 'delete name crew'])
  expect(cleaned).toEqual(['crew'])
})
