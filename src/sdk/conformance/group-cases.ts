import assert from 'node:assert/strict'
import { casesFor, type TargetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { type GroupTarget, hasGroups, hasLookups } from '#sdk/target/target.ts'

/** For targets that own groups. */
export const groupCases = casesFor('groups', hasGroups, {
  'a group is made once; the same again succeeds, another is a conflict': async (
    target,
    { request, changes, assertReported },
  ) => {
    assert.equal(await target.findGroup('crew'), undefined)
    await target.createGroup('crew', { description: ['Runs things'] }, request)
    assert.equal((await target.findGroup('crew'))?.name, 'crew')
    assertReported({ subject: 'entry', action: 'add', value: 'crew' })
    changes.length = 0
    await target.createGroup('crew', { description: ['Runs things'] }, request)
    await assert.rejects(target.createGroup('crew', { description: ['Other'] }, request), { code: 'CONFLICT' })
    assert.deepEqual(changes, [])
  },
  'a group goes once, and its members stay': async (target, { attributes, request, changes, create }) => {
    await target.createGroup('crew', {}, request)
    await create(userOf('ada', {}, ['crew']))
    changes.length = 0
    await target.deleteGroup('crew', request)
    await target.deleteGroup('crew', request)
    assert.equal(await target.findGroup('crew'), undefined)
    assert.deepEqual(
      changes.filter(({ subject }) => subject === 'entry').map(({ action, value }) => [action, value]),
      [['delete', 'crew']],
    )
    const ada = await target.findUser('ada', attributes, request)
    assert.deepEqual(ada?.groups, [])
  },
  'a group is renamed with its members, and takes new attributes': async (target, fixture) => {
    const { attributes, request, changes, create, assertReported } = fixture
    await target.createGroup('crew', { description: ['Old'] }, request)
    await create(userOf('ada', {}, ['crew']))
    const before = await target.findGroup('crew')
    changes.length = 0
    if (!(await updates(target, 'crew', { newName: 'team', attributes: { description: ['New'] } }, fixture))) return
    assertReported({ subject: 'entry', action: 'replace', value: 'team' })
    assertReported({ subject: 'attribute', attribute: 'description', value: 'New' })
    assert.equal(await target.findGroup('crew'), undefined)
    const after = await target.findGroup('team')
    if (hasLookups(target) && target.groupHasOwnId) assert.equal(after?.id, before?.id)
    assert.deepEqual((await target.findUser('ada', attributes, request))?.groups, ['team'])
    changes.length = 0
    await target.updateGroup('team', { newName: 'team', attributes: { description: ['New'] } }, request)
    assert.deepEqual(changes, [])
    await assert.rejects(target.updateGroup('crew', { newName: 'x' }, request), { code: 'NOT_FOUND' })
    await target.createGroup('other', {}, request)
    await assert.rejects(target.updateGroup('team', { newName: 'other' }, request), { code: 'CONFLICT' })
  },
  'changes of a group are bound to its version': async (target, { request }) => {
    if (target.keepsVersions !== true) return
    await target.createGroup('crew', {}, request)
    const version = async () => (await target.findGroup('crew'))?.version ?? ''
    const expectedVersion = await version()
    const attempts = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        target.updateGroup('crew', { attributes: { description: [`v${i}`] }, expectedVersion }, request),
      ),
    )
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
    assert.deepEqual(refused, Array(19).fill('VERSION_MISMATCH'))
    await assert.rejects(target.deleteGroup('crew', request, { expectedVersion }), { code: 'VERSION_MISMATCH' })
    await target.deleteGroup('crew', request, { expectedVersion: await version() })
    assert.equal(await target.findGroup('crew'), undefined)
  },
})

/** False for a target that creates and deletes groups and can't change them. */
async function updates(
  target: GroupTarget,
  name: string,
  change: Parameters<GroupTarget['updateGroup']>[1],
  { request }: TargetFixture,
): Promise<boolean> {
  try {
    await target.updateGroup(name, change, request)
    return true
  } catch (error) {
    assert.equal((error as { code?: unknown }).code, 'NOT_SUPPORTED')
    return false
  }
}
