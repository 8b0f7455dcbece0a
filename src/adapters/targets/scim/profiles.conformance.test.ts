import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { type ApplicationName, ScimApplication } from '#testing/scim/scim-application.ts'
import type { ProfileName } from './profiles.ts'
import { openScimTarget, type ScimTarget } from './scim-target.ts'

const groupNames = ['group1', 'group2', 'group3'] as const

const openTarget = (
  { url, token }: ScimApplication,
  profile: ProfileName | undefined,
  missingGroups: 'refuse' | 'create' = 'refuse',
): Promise<ScimTarget> =>
  openScimTarget(
    {
      url,
      access: { kind: 'token', token },
      authority: undefined,
      profile,
      memberships: 'user',
      missingGroups,
      passwords: false,
      timeoutMillis: 30_000,
    },
    { name: 'application', log: silentLogger, clock: systemClock, javaScript: () => undefined },
  )

/** A target whose new users have what the application needs of each of them. */
function withNeeded(target: ScimTarget, needed: readonly string[]): ScimTarget {
  const createUser: ScimTarget['createUser'] = (user, attributes, request, options) => {
    const more = needed.map((name) => [name, [`${user.userID}@x.test`]] as const)
    const all = Attributes.from(more)
    for (const name of attributes) all.set(name, user.attributes.values(name))
    return target.createUser({ ...user, attributes: all }, [...needed, ...attributes], request, options)
  }
  return { ...target, createUser }
}

/** The application with its target, afresh for each test. */
function useApplication(name: ApplicationName) {
  const application = new ScimApplication(name)
  let target: ScimTarget
  beforeAll(() => application.listen())
  afterAll(() => application.close())
  beforeEach(async () => {
    application.empty()
    if (name !== 'gitlab') for (const group of groupNames) application.addGroup(group)
    target = await openTarget(application, name)
    application.received.length = 0
    return () => target.close()
  })
  return {
    application,
    target: () => target,
    /** What the application refused of the target's requests. */
    refused: () => application.received.filter(({ status }) => status >= 400 && status !== 404),
    step: () => targetFixture(target, { attributes: ['a', 'b', 'c'], groups: groupNames }),
  }
}

const reported = (changes: readonly TargetChange[]) =>
  changes.map(({ action, attribute, value }) => `${action} ${attribute} ${value}`)

const needsMore = 'an attribute that the target reports as supported'
/** These applications have no description of a group. */
const ofGroups = ['groups: a group is made once', 'groups: a group is renamed']
const ofDeletions = [
  'create, find, change, delete',
  'deleting a user twice',
  'a deleted user can be created again',
  'hostile text is only text',
  'a login in another letter case',
  'a member that leaves or is deleted',
  'audit: deleting reports the entry',
]

describe.each([
  ['slack', ['phoneNumbers.value', 'name.givenName', 'title'], ['emails.value'], ofDeletions],
  ['atlassian', ['phoneNumbers.value', 'name.givenName', 'title'], ['emails.value'], ofDeletions],
  ['github', ['roles.value', 'name.givenName', 'name.familyName'], ['externalId', 'displayName', 'emails.value'], []],
] as const)('conformance of %s', (name, attributes, needed, unable) => {
  const { application } = useApplication(name)
  async function open() {
    const target = withNeeded(await openTarget(application, name), needed)
    return { target, close: async () => target.close() }
  }
  targetConformance(name, open, {
    test: (title, run) => test(title, run),
    attributes,
    groups: groupNames,
    except: [needsMore, ...ofGroups, ...unable],
  })
})

describe('slack', () => {
  const { application, target, step, refused } = useApplication('slack')
  const ann = (values = {}) => userOf('ann', { 'emails.value': ['ann@x.test'], ...values }, ['group1'])

  test('deleting a user deactivates it, says so, and shows it as off', async () => {
    const { request, changes } = step()
    await target().createUser(ann(), ['emails.value'], request)
    changes.length = 0
    for (let i = 0; i < 2; i++) await target().deleteUser(ann(), request)
    expect(reported(changes)).toEqual(['replace active false'])
    expect((await target().lookupUserByLogin('ann'))?.attributes.first('active')).toBe('false')
    expect(application.users().get('ann')).toMatchObject({ active: false })
    expect(refused()).toEqual([])
  })

  test('a deactivation whose answer is lost is reported once', async () => {
    const { request, changes } = step()
    await target().createUser(ann(), ['emails.value'], request)
    changes.length = 0
    application.losesAnswer = ({ method }) => method === 'PATCH'
    await target().deleteUser(ann(), request)
    expect(reported(changes)).toEqual(['replace active false'])
  })

  test('a login that Slack would change is refused before it is sent, and so is a user without an email', async () => {
    const { request } = step()
    for (const login of ['ann@x.test', 'Ann', 'a'.repeat(22)]) {
      const made = target().createUser({ ...ann(), userID: login }, ['emails.value'], request)
      await expect(made).rejects.toMatchObject({ code: 'BAD_REQUEST', attribute: 'userName' })
    }
    const bare = target().createUser(userOf('bob'), [], request)
    await expect(bare).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: '"emails" cannot be written to the server behind: Slack needs it for a new user.',
    })
    await target().createUser(ann(), ['emails.value'], request)
    const renamed = target().syncUser(ann(), syncOptions([], { newUserID: 'Ann' }), request)
    await expect(renamed).rejects.toMatchObject({ code: 'BAD_REQUEST', attribute: 'userName' })
    expect([...application.users().keys()]).toEqual(['ann'])
    expect(refused()).toEqual([])
  })
})

describe('github', () => {
  const { application, target, step, refused } = useApplication('github')
  const values = { externalId: ['e1'], displayName: ['Ann'], 'emails.value': ['ann@x.test', 'a@y.test'] }
  const ann = (groups: readonly string[] = []) => userOf('ann', values, groups)
  const names = Object.keys(values)

  test('a user has the parts that GitHub needs, joins and leaves, and is deactivated', async () => {
    const { request } = step()
    await target().createUser(ann(['group1', 'group2']), names, request)
    expect(application.users().get('ann')).toMatchObject({
      active: true,
      externalId: 'e1',
      emails: [
        { value: 'ann@x.test', type: 'work', primary: true },
        { value: 'a@y.test', type: 'work', primary: false },
      ],
    })
    await target().syncUser(ann(['group2']), syncOptions(names), request)
    expect(Object.fromEntries(application.groups())).toEqual({ group1: [], group2: ['ann'], group3: [] })
    const off = userOf('ann', { active: ['false'] })
    await target().syncUser(off, syncOptions(['active'], { keepGroups: true }), request)
    expect((await target().lookupUserByLogin('ann'))?.attributes.first('active')).toBe('false')
    expect(refused()).toEqual([])
  })

  test('a missing attribute is named before anything is sent', async () => {
    const { externalId: _, ...others } = values
    const made = target().createUser(userOf('ann', others), names, step().request)
    await expect(made).rejects.toMatchObject({ code: 'BAD_REQUEST', attribute: 'externalId' })
    const unknown = target().createUser(
      userOf('ann', { ...values, title: ['Dr'] }),
      [...names, 'title'],
      step().request,
    )
    await expect(unknown).rejects.toMatchObject({ code: 'BAD_REQUEST', attribute: 'title' })
    expect(refused()).toEqual([])
  })

  test('a group is created with an external id, renamed and deleted', async () => {
    const { createGroup, updateGroup, deleteGroup } = target()
    const { request } = step()
    await createGroup?.('crew', {}, request)
    await updateGroup?.('crew', { newName: 'team' }, request)
    await deleteGroup?.('group1', request)
    expect([...application.groups().keys()].sort()).toEqual(['group2', 'group3', 'team'])
    expect(refused()).toEqual([])
  })

  test('a group that people join at the same time is created once, if that is configured', async () => {
    const creating = await openTarget(application, 'github', 'create')
    const { request, changes } = step()
    const logins = ['ann', 'bob', 'cyd']
    const join = (login: string, groups: readonly string[]) => {
      const of = { ...values, externalId: [login], 'emails.value': [`${login}@x.test`] }
      return userOf(login, of, groups)
    }
    await Promise.all(logins.map((login) => creating.createUser(join(login, ['crew']), names, request)))
    expect(application.groups().get('crew')).toEqual(logins)
    expect(reported(changes).filter((change) => change === 'add name crew')).toHaveLength(1)
    await creating.syncUser(join('ann', ['team']), syncOptions(names), request)
    expect(Object.fromEntries(application.groups())).toMatchObject({ crew: ['bob', 'cyd'], team: ['ann'] })
    expect(refused()).toEqual([])
    creating.close()
  })

  test('without the profile, GitHub refuses to remove a member', async () => {
    const { request } = step()
    await target().createUser(ann(['group1']), names, request)
    const plain = await openTarget(application, undefined)
    const left = plain.syncUser(ann(), syncOptions(names), request)
    await expect(left).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    plain.close()
  })
})

describe('gitlab', () => {
  const { application, target, step, refused } = useApplication('gitlab')
  const values = { externalId: ['e1'], 'name.formatted': ['Ann Lee'], 'emails.value': ['ann@x.test'] }
  const ann = userOf('ann', values)
  const names = Object.keys(values)

  test('a user is created, found with its external id and name, and shown as off once deactivated', async () => {
    const { request, changes } = step()
    await target().createUser(ann, names, request)
    const found = await target().lookupUserByLogin('ann')
    expect(found?.id).toBe('e1')
    expect(found?.attributes.pick(names).toObject()).toEqual(ann.attributes.toObject())
    await target().syncUser(ann, syncOptions(names), request)
    const off = userOf('ann', { active: ['false'] })
    await target().syncUser(off, syncOptions(['active']), request)
    expect(reported(changes).at(-1)).toBe('replace active false')
    const { items } = await target().searchUsers({ offset: 0, limit: 10 })
    expect(items.map((user) => user.attributes.first('active'))).toEqual(['false'])
    await target().deleteUser(ann, request)
    expect(application.users().size).toBe(0)
    expect(refused()).toEqual([])
  })

  test('what GitLab accepts with a new user only is refused by name', async () => {
    const { request } = step()
    await target().createUser(ann, names, request)
    const other = userOf('ann', { ...values, 'emails.value': ['new@x.test'] })
    await expect(target().syncUser(other, syncOptions(names), request)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: '"emails" cannot be written to the server behind: GitLab accepts it with a new user only.',
    })
    expect(target().renamesUsers).toBe(false)
    expect(refused()).toEqual([])
  })

  test('it has no groups, and none is asked for', async () => {
    expect('createGroup' in target()).toBe(false)
    expect(await target().searchGroups({ offset: 0, limit: 10 })).toEqual({ items: [], total: 0 })
    const joined = target().createUser({ ...ann, groups: ['group1'] }, names, step().request)
    await expect(joined).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(application.received.filter(({ path }) => path.startsWith('/Groups'))).toEqual([])
  })
})

describe('atlassian', () => {
  const { application, target, step, refused } = useApplication('atlassian')
  const ann = userOf('ann@x.test', { 'emails.value': ['ann@x.test'] }, ['group1'])

  test('a deleted user stays, deactivated, and can be activated again', async () => {
    const { request } = step()
    await target().createUser(ann, ['emails.value'], request)
    await target().deleteUser(ann, request)
    expect((await target().lookupUserByLogin('ann@x.test'))?.attributes.first('active')).toBe('false')
    const on = userOf('ann@x.test', { active: ['true'] })
    await target().syncUser(on, syncOptions(['active'], { keepGroups: true }), request)
    expect(application.users().get('ann@x.test')).toMatchObject({ active: true })
    expect(refused()).toEqual([])
  })

  test('without the profile, a deleted user is hidden, and its login stays taken', async () => {
    const { request } = step()
    await target().createUser(ann, ['emails.value'], request)
    const plain = await openTarget(application, undefined)
    await plain.deleteUser(ann, request)
    expect(await plain.lookupUserByLogin('ann@x.test')).toBeUndefined()
    const again = target().createUser(ann, ['emails.value'], request)
    await expect(again).rejects.toMatchObject({ code: 'CONFLICT' })
    plain.close()
  })

  test('a group is not renamed, and the error says what to do', async () => {
    const renamed = target().updateGroup?.('group1', { newName: 'team' }, step().request)
    await expect(renamed).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      publicText: "Atlassian can't rename a group. Create a group with the new name, and delete this one.",
    })
    expect(refused()).toEqual([])
  })
})
