import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { MemoryGroups } from '#testing/targets/memory-groups.ts'
import { customTask, issuesOf, startWorkflows, type TaskSpec, userAfter } from '#testing/workflows/workflow-fixture.ts'

const openUnison = 'com.tremolosecurity.provisioning'

const entryOf = (dn: string, attributes: Record<string, string[]>): DirectoryEntry => ({
  dn: Dn.parse(dn),
  attributes: Attributes.from(attributes),
  identity: dn as DirectoryEntry['identity'],
})
const groups = [
  entryOf('cn=admins-west,ou=groups,o=Tremolo', { cn: ['admins-west'] }),
  entryOf('cn=admins-west\\,ou\\=x,ou=groups,o=Tremolo', { cn: ['hostile'] }),
]
const people = ['ada', 'bob', 'cyd'].map((uid) => entryOf(`uid=${uid},ou=people,o=Tremolo`, { uid: [uid] }))
const nameless = entryOf('cn=robot,o=Tremolo', {})

const directory = {
  search: async ({ base }: { readonly base: Dn }) => groups.filter(({ dn }) => dn.toString() === base.toString()),
  isMember: async () => false,
  members: async (group: Dn) => (group.toString() === groups[0]?.dn.toString() ? [...people, nameless] : []),
}

function store(): MemoryGroups {
  const target = new MemoryGroups()
  for (const name of ['approvers-west', 'admins-west']) target.addGroup(name, {})
  return target
}

async function ran(specs: readonly TaskSpec[], called: readonly TaskSpec[], params: Record<string, string>) {
  const target = store()
  const fixture = await startWorkflows({
    workflows: { w: specs, called },
    targets: { store: target },
    directory,
  })
  await fixture.run('w', { params })
  return {
    target,
    audit: fixture.audit.rows.map(({ subject, requestor, kind, action, value }) =>
      [subject, requestor, kind, action, value].join(' '),
    ),
  }
}

const provision = { taskType: 'provision', target: 'store', sync: false, attributes: ['uid'] }

describe('tasks.CopyGroupMembers', () => {
  const copy = customTask(`${openUnison}.tasks.CopyGroupMembers`, {
    copyWorkflow: 'called',
    copyTo: 'approvers-$cluster$',
    copyFrom: 'cn=admins-$cluster$,ou=groups,o=Tremolo',
    uidAttributeName: 'uid',
    requestor: 'system',
  })

  test('runs the workflow once for each member before the next task, and returns to its own user', async () => {
    const { audit } = await ran([copy, provision], [provision], { cluster: 'west' })
    expect(audit.filter((row) => row.includes('entry add'))).toEqual([
      'ada caller entry add ada',
      'bob caller entry add bob',
      'cyd caller entry add cyd',
      'jjackson caller entry add jjackson',
    ])
    expect(audit.filter((row) => row.includes('group add'))).toEqual([
      'ada caller group add approvers-west',
      'bob caller group add approvers-west',
      'cyd caller group add approvers-west',
    ])
  })

  test('a value cannot name another entry, and a missing group has no members', async () => {
    for (const cluster of ['west,ou=x', 'none']) {
      expect((await ran([copy], [provision], { cluster })).audit).toEqual([])
    }
    await expect(ran([copy], [provision], {})).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
  })

  test('needs a valid name', () => {
    const params = { copyWorkflow: 'called', copyTo: 'x', copyFrom: 'no name', uidAttributeName: 'uid' }
    expect(issuesOf([customTask('tasks.CopyGroupMembers', params)])).toHaveLength(1)
  })
})

test('tasks.DeleteGroupMembers gives the name of the group to the workflow', async () => {
  const remove = customTask(`${openUnison}.customTasks.DeleteGroupMembers`, {
    removeWorkflow: 'called',
    groupToDelete: 'cn=admins-$cluster$,ou=groups,o=Tremolo',
    groupNameAttribute: 'cn',
    uidAttributeName: 'uid',
    requestor: 'system',
  })
  const add = { taskType: 'addGroup', name: '$openunison_grouptoremove$' }
  const { audit } = await ran([remove], [add, provision], { cluster: 'west' })
  expect(audit.filter((row) => row.includes('group add'))).toEqual([
    'ada caller group add admins-west',
    'bob caller group add admins-west',
    'cyd caller group add admins-west',
  ])
})

test('tasks.DoesGroupExist says whether the target has the group', async () => {
  const exists = (groupName: string) =>
    userAfter(
      [customTask(`${openUnison}.tasks.DoesGroupExist`, { target: 'store', groupName, attributeName: 'found' })],
      { params: { cluster: 'west' } },
      { targets: { store: store() } },
    )
  expect(await exists('approvers-$cluster$')).toMatchObject({ attributes: { found: ['true'] } })
  expect(await exists('x-$cluster$')).toMatchObject({ attributes: { found: ['false'] } })
})
