import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import { MemoryGroups, MemoryNestedGroups } from '#testing/targets/memory-groups.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, type FixtureOptions, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'
import { previewRun } from './previews.ts'

async function preview(
  tasks: readonly TaskSpec[],
  options: Omit<FixtureOptions, 'workflows'>,
  attributes: Record<string, string[]> = {},
): Promise<Preview> {
  const { workflows } = await startWorkflows({ ...options, workflows: { w: tasks } })
  const user = { userID: 'ann', attributes: Attributes.from(attributes), groups: [] }
  return await previewRun(
    workflows.begin({ head: { workflow: 'w', requester: 'caller' }, params: {}, user }),
    workflows,
  )
}

const group = (className: string, params: Record<string, string | string[]>): TaskSpec =>
  customTask(`tasks.${className}`, { target: 'store', ...params })

describe('groups', () => {
  test('are shown as new members of groups, and the target stays unchanged', async () => {
    const store = new MemoryNestedGroups()
    for (const name of ['all', 'eng']) store.addGroup(name)
    const { steps } = await preview(
      [
        group('NestGroup', { name: 'all', memberGroup: 'eng', remove: 'false' }),
        group('NestGroup', { name: 'all', memberGroup: 'eng', remove: 'true' }),
      ],
      { targets: { store } },
    )
    const members = (before: string[], after: string[]) => ({ name: 'members', secret: false, before, after })
    expect(steps).toMatchObject([
      { kind: 'group', action: 'change', name: 'all', attributes: [members([], ['eng'])] },
      { kind: 'group', action: 'change', name: 'all', attributes: [members(['eng'], [])] },
    ])
    expect(store.nested.size).toBe(0)
  })

  test('are shown as created, changed, renamed and deleted, and the target stays unchanged', async () => {
    const store = new MemoryGroups()
    store.addGroup('staff', { description: ['Old'], mail: ['s@x.org'] })
    const before = store.listed()
    const { steps, whole } = await preview(
      [
        group('CreateGroup', { name: 'crew', attributes: ['description=New', 'apiToken=hush'] }),
        group('CreateGroup', { name: 'crew', attributes: ['description=New', 'apiToken=hush'] }),
        group('AddGroupToStore', { name: 'staff', attributes: ['description=Else'] }),
        group('UpdateGroup', { name: 'staff', newName: 'people', attributes: ['description=New', 'mail=s@x.org'] }),
        group('UpdateGroup', { name: 'people', newName: 'people', attributes: ['description=Newer'] }),
        group('DeleteGroup', { name: ['people', 'none', 'staff'] }),
      ],
      { targets: { store } },
    )
    const common = { kind: 'group', target: 'store', joins: [], leaves: [], cut: false }
    const description = (from: string[], to: string) => ({
      name: 'description',
      secret: false,
      before: from,
      after: [to],
    })
    expect(steps).toEqual([
      {
        ...common,
        action: 'create',
        name: 'crew',
        attributes: [description([], 'New'), { name: 'apiToken', secret: true, before: [], after: [] }],
      },
      { ...common, action: 'change', name: 'staff', newName: 'people', attributes: [description(['Old'], 'New')] },
      { ...common, action: 'change', name: 'people', attributes: [description(['New'], 'Newer')] },
      { ...common, action: 'delete', name: 'people', attributes: [] },
    ])
    expect(whole).toBe(true)
    expect(store.listed()).toEqual(before)
    expect(store.calls).toEqual([])
  })

  test('a change that the target would reject is shown as a step without preview', async () => {
    const store = new MemoryGroups()
    store.addGroup('staff', { description: ['Old'] })
    const tasks = [
      group('CreateGroup', { name: 'staff', attributes: ['description=Other'] }),
      group('UpdateGroup', { name: 'none', attributes: ['description=Other'] }),
    ]
    const result = await preview(tasks, { targets: { store } })
    expect(result.steps).toEqual([
      { kind: 'unforeseen', task: 'tasks.CreateGroup', reason: 'The request conflicts with the present state.' },
      { kind: 'unforeseen', task: 'tasks.UpdateGroup', reason: expect.any(String) },
    ])
    const bare = await preview(tasks.slice(0, 1), { targets: { store: new MemoryTarget() } })
    expect(bare.steps).toMatchObject([
      { kind: 'unforeseen', reason: expect.stringContaining('cannot create, change or delete groups') },
    ])
  })
})

test('an extended expiry date is shown and not stored', async () => {
  const at = (text: string): Date => new Date(text)
  const held = (name: string, expires: string): Grant => ({
    id: name,
    target: 'store',
    subject: 'ann',
    kind: 'group',
    name,
    granted: at('2026-01-01T00:00:00Z'),
    expires: at(expires),
    state: 'active',
  })
  const grants = {
    ofSubject: async () => [held('vault', '2026-02-01T00:00:00Z'), held('safe', '2099-01-01T00:00:00Z')],
    through: async () => [],
    extend: async (): Promise<never> => {
      throw new Error('nothing may be extended')
    },
  }
  const extend = (name: string) => group('ExtendAccess', { group: name, expiresAt: '2027-01-01T00:00:00Z' })
  const given = { targets: { store: new MemoryTarget() }, grants }
  const extended = { kind: 'end', target: 'store', of: 'group', name: 'vault', expires: at('2027-01-01T00:00:00Z') }
  const refused = { kind: 'unforeseen', task: 'tasks.ExtendAccess' }
  expect((await preview([extend('vault'), extend('none')], given)).steps).toEqual([
    extended,
    { ...refused, reason: 'There is no access with an end that could be extended.' },
  ])
  expect((await preview([extend('vault'), extend('safe')], given)).steps).toEqual([
    extended,
    { ...refused, reason: expect.stringContaining('The access lasts until 2099-01-01') },
  ])
})
