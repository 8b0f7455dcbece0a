import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { runTask } from '#testing/workflows/run-task.ts'
import { issuesOf } from '#testing/workflows/workflow-fixture.ts'

const entry = (dn: string, mail: string) => ({
  dn: Dn.parse(dn),
  attributes: Attributes.from({
    uid: ['jjackson'],
    mail: [mail],
    objectClass: ['inetOrgPerson'],
    memberOf: ['cn=admins,ou=groups,ou=people,o=Tremolo', 'cn=everyone,ou=groups,ou=people,o=Tremolo'],
  }),
})

const host = fakeModuleHost({ entries: [entry('uid=jjackson,ou=people,o=Tremolo', 'new@example.com')] })
const attributes = { mail: ['old@example.com'], badge: ['7'] }
const run = (more = {}, options = {}) => runTask({ taskType: 'resync', ...more }, { attributes, host, ...options })

test('the user equals the directory entry, groups included', async () => {
  const { user } = await run({}, { user: { keepGroups: true, groups: ['stale'] } })
  expect(user.attributes.toObject()).toEqual({ uid: ['jjackson'], mail: ['new@example.com'] })
  expect({ groups: user.groups, keepGroups: user.keepGroups }).toEqual({
    groups: ['admins', 'everyone'],
    keepGroups: false,
  })
})

test('a list of the memberships is not an attribute of the user, another attribute of that name is', async () => {
  const withGroups = (groups: string[]) => {
    const one = entry('uid=jjackson,ou=people,o=Tremolo', 'new@example.com')
    one.attributes.set('groups', groups)
    return { host: fakeModuleHost({ entries: [one] }) }
  }
  expect((await run({}, withGroups(['admins', 'everyone']))).user.attributes.has('groups')).toBe(false)
  expect((await run({}, withGroups(['other']))).user.attributes.values('groups')).toEqual(['other'])
})

test('attributes that the directory does not have are kept if configured', async () => {
  const { user } = await run({ keepExternalAttrs: 'true' })
  expect(user.attributes.toObject()).toEqual({ uid: ['jjackson'], mail: ['new@example.com'], badge: ['7'] })
})

test('another root is searched instead, and a missing user fails the step', async () => {
  const two = fakeModuleHost({
    entries: [
      entry('uid=jjackson,ou=people,o=Tremolo', 'people@example.com'),
      entry('uid=jjackson,ou=crm,o=Tremolo', 'crm@example.com'),
    ],
  })
  const { user } = await run({ changeRoot: true, newRoot: 'ou=crm,o=Tremolo' }, { host: two })
  expect(user.attributes.first('mail')).toBe('crm@example.com')
  await expect(run({}, { host: two })).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
  await expect(run({ changeRoot: true, newRoot: 'ou=none,o=Tremolo' })).rejects.toMatchObject({
    code: 'WORKFLOW_FAILED',
  })
})

test('an invalid root is reported', () => {
  expect(issuesOf([{ taskType: 'resync', changeRoot: true }])).toEqual(['0.newRoot: "newRoot" is required'])
  expect(issuesOf([{ taskType: 'resync', changeRoot: true, newRoot: 'nonsense' }])[0]).toMatch(/^0\.newRoot: /)
})
