import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { Attributes } from '#identity/attributes.ts'
import { entryIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Issues } from '#kernel/issues.ts'
import { prepareMapping } from '#sdk/mapper/mapping.ts'
import type { Target } from '#sdk/target/target.ts'
import { createUser, deleteUser } from '#testing/databases/directory-writes.ts'
import { memoryUserDirectory } from '#testing/databases/memory-database.ts'
import { quietRequest } from '#testing/ldap/ldap-target.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext } from '#testing/modules/fake-parse.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { runTask } from '#testing/workflows/run-task.ts'
import { parseTasks, startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

const provision = (extra = {}): TaskSpec => ({ taskType: 'provision', target: 'store', sync: true, ...extra })

async function provisioned(
  store: Target,
  task: TaskSpec,
  call: Parameters<Awaited<ReturnType<typeof startWorkflows>>['run']>[1],
) {
  const { run } = await startWorkflows({ workflows: { w: [task] }, targets: { store } })
  return run('w', call)
}

const stored = () =>
  new MemoryTarget([
    { userID: 'jjackson', attributes: { mail: ['old'], phone: ['1'], note: ['kept'] }, groups: ['group1', 'group2'] },
  ])

describe('parsing', () => {
  test('reports every invalid field at its position', () => {
    const { issues } = parseTasks([
      { taskType: 'provision', sync: 'perhaps', setPassword: 3, attributes: ['a', { b: 1 }] },
      { taskType: 'provision', target: ['x'], attributes: 'mail' },
    ])
    expect(issues.list.map(({ path, message }) => `${path.join('.')}: ${message}`)).toEqual([
      '0.target: "target" is required',
      '0.sync: "sync" must be "true" or "false", not "perhaps"',
      '0.setPassword: "setPassword" must be "true" or "false", not "3"',
      '0.attributes.1: every entry of "attributes" must be text',
      '1.target: "target" must be text',
      '1.sync: "sync" is required',
      '1.attributes: "attributes" must be a list',
    ])
  })

  test('the target is a reference, and the flow names the written attributes with their positions', () => {
    const { tasks, referred } = parseTasks([provision({ sync: 'TRUE', attributes: ['mail'] }), provision()])
    expect(referred[0]).toEqual({ kind: 'target', name: 'store', path: [0, 'target'] })
    expect(tasks.map(({ flow }) => flow.provisions)).toEqual([
      { target: 'store', attributes: [{ attribute: 'mail', path: [0, 'attributes', 0] }] },
      { target: 'store', attributes: undefined },
    ])
  })
})

describe('an attribute that the request removed', () => {
  test('is cleared if no attributes are listed, unless a later task set it', async () => {
    const store = stored()
    await provisioned(store, provision(), {
      attributes: { phone: ['2'] },
      cleared: ['MAIL', 'phone'],
      keepGroups: true,
    })
    expect(store.stored('jjackson')?.attributes).toEqual({ phone: ['2'], note: ['kept'] })
  })

  test('stays if the list does not name it, if only passed-in attributes count, and if nothing is removed', async () => {
    for (const task of [
      provision({ attributes: ['phone'] }),
      provision({ onlyPassedInAttributes: true }),
      provision({ sync: false }),
    ]) {
      const store = stored()
      await provisioned(store, task, { attributes: { phone: ['1'] }, cleared: ['mail'], keepGroups: true })
      expect(store.stored('jjackson')?.attributes['mail']).toEqual(['old'])
    }
  })

  test("passes through the target's own mapping", async () => {
    const store = stored()
    const rule = (attribute: string, source: string) => ({ attribute, source, sourceType: 'user', path: [] }) as const
    const mapping = prepareMapping([rule('mail', 'email'), rule('phone', 'tel')], new Issues(), fakeParseContext())
    const { run } = await startWorkflows({
      workflows: { w: [provision()] },
      targets: { store },
      mappings: { store: mapping },
    })
    await run('w', { attributes: { tel: ['1'] }, cleared: ['email'], keepGroups: true })
    expect(store.stored('jjackson')?.attributes).toEqual({ phone: ['1'], note: ['kept'] })
  })
})

describe('sync: true', () => {
  test('makes listed attributes and groups equal, and clears a listed attribute that the user does not have', async () => {
    const store = stored()
    await provisioned(store, provision({ attributes: ['MAIL', 'phone'] }), {
      attributes: { mail: ['new'] },
      groups: ['group2', 'group3'],
    })
    expect(store.stored('jjackson')).toEqual({
      attributes: { mail: ['new'], note: ['kept'] },
      groups: ['group2', 'group3'],
    })
  })

  test('onlyPassedInAttributes clears nothing', async () => {
    const store = stored()
    const task = provision({ attributes: ['mail', 'phone'], onlyPassedInAttributes: 'true' })
    await provisioned(store, task, { attributes: { mail: ['new'] }, keepGroups: true })
    expect(store.stored('jjackson')?.attributes).toEqual({ mail: ['new'], phone: ['1'], note: ['kept'] })
  })

  test('an empty list writes all attributes of the user, and keeps the others', async () => {
    const store = stored()
    await provisioned(store, provision(), { attributes: { mail: ['new'], title: ['Dr'] }, keepGroups: true })
    expect(store.stored('jjackson')?.attributes).toEqual({ mail: ['new'], phone: ['1'], note: ['kept'], title: ['Dr'] })
  })

  test('attributes outside the list never reach the target', async () => {
    const store = new MemoryTarget()
    await provisioned(store, provision({ attributes: ['mail'] }), { attributes: { mail: ['m'], admin: ['true'] } })
    expect(store.stored('jjackson')?.attributes).toEqual({ mail: ['m'] })
  })
})

describe('sync: false', () => {
  test('only adds', async () => {
    const store = stored()
    await provisioned(store, provision({ sync: false, attributes: ['mail', 'phone'] }), {
      attributes: { mail: ['new'] },
      groups: ['group3'],
    })
    expect(store.stored('jjackson')).toEqual({
      attributes: { mail: ['old', 'new'], phone: ['1'], note: ['kept'] },
      groups: ['group1', 'group2', 'group3'],
    })
  })
})

describe('unknown memberships', () => {
  test('stay unchanged', async () => {
    const store = stored()
    await provisioned(store, provision({ attributes: ['mail'] }), { attributes: { mail: ['new'] }, keepGroups: true })
    expect(store.stored('jjackson')?.groups).toEqual(['group1', 'group2'])
  })

  test('are not a difference, and concurrent changes to them are not undone', async () => {
    const store = stored()
    await provisioned(store, provision({ attributes: ['mail'] }), { attributes: { mail: ['old'] }, keepGroups: true })
    expect(store.methods()).toEqual(['findUser'])
    store.before = ({ method }) => {
      if (method === 'syncUser') store.touch('jjackson', ['outside'])
    }
    await provisioned(store, provision({ attributes: ['mail'] }), { attributes: { mail: ['new'] }, keepGroups: true })
    expect(store.stored('jjackson')).toMatchObject({ attributes: { mail: ['new'] }, groups: ['outside'] })
  })

  test("apply an addGroup to the target's memberships, never as the whole list", async () => {
    const store = stored()
    const { run } = await startWorkflows({
      workflows: {
        w: [
          { taskType: 'addGroup', name: 'group3' },
          { taskType: 'addGroup', name: 'GROUP1', remove: 'true' },
          provision({ attributes: ['mail'], onlyPassedInAttributes: true }),
        ],
      },
      targets: { store },
    })
    await run('w', { keepGroups: true })
    expect(store.stored('jjackson')?.groups).toEqual(['group2', 'group3'])
  })

  test('a concurrent change is not lost', async () => {
    const store = stored()
    let once = true
    store.before = ({ method }) => {
      if (method === 'syncUser' && once) store.touch('jjackson', ['group1', 'group2', 'outside'])
      if (method === 'syncUser') once = false
    }
    const { run } = await startWorkflows({
      workflows: {
        w: [
          { taskType: 'addGroup', name: 'group3' },
          provision({ attributes: ['mail'], onlyPassedInAttributes: true }),
        ],
      },
      targets: { store },
    })
    await run('w', { keepGroups: true })
    expect(store.stored('jjackson')?.groups).toEqual(['group1', 'group2', 'outside', 'group3'])
  })
})

describe('groups', () => {
  const groups = ['group1', 'GROUP3']
  const groupsAt = (store: MemoryTarget) => store.stored('jjackson')?.groups.toSorted()

  test('in the list are joined and left; other memberships stay', async () => {
    const store = stored()
    await provisioned(store, provision({ groups }), { groups: ['group3', 'administrators'] })
    expect(groupsAt(store)).toEqual(['group2', 'group3'])
    await provisioned(store, provision({ groups, sync: false }), { groups: ['group1', 'administrators'] })
    expect(groupsAt(store)).toEqual(['group1', 'group2', 'group3'])
  })

  test('outside the list are not given to a new user either', async () => {
    const store = new MemoryTarget()
    await provisioned(store, provision({ groups }), { groups: ['group1', 'administrators'] })
    expect(groupsAt(store)).toEqual(['group1'])
  })

  test('an empty list writes no membership, so memberships alone do not count as a difference', async () => {
    const store = stored()
    await provisioned(store, provision({ groups: [], attributes: ['mail'] }), {
      attributes: { mail: ['old'] },
      groups: ['administrators'],
    })
    expect(store.methods()).toEqual(['findUser'])
  })

  test('limit the changes of earlier tasks, for this task alone', async () => {
    const store = stored()
    const other = stored()
    const { run } = await startWorkflows({
      workflows: {
        w: [
          { taskType: 'addGroup', name: 'group3' },
          { taskType: 'addGroup', name: 'administrators' },
          { taskType: 'addGroup', name: 'group2', remove: 'true' },
          provision({ groups }),
          provision({ target: 'other' }),
        ],
      },
      targets: { store, other },
    })
    await run('w', { keepGroups: true })
    expect(groupsAt(store)).toEqual(['group1', 'group2', 'group3'])
    expect(groupsAt(other)).toEqual(['administrators', 'group1', 'group3'])
  })

  test('a concurrent change of another writer is not lost', async () => {
    const store = stored()
    let once = true
    store.before = ({ method }) => {
      if (method === 'syncUser' && once) store.touch('jjackson', ['group1', 'outside'])
      if (method === 'syncUser') once = false
    }
    await provisioned(store, provision({ groups }), { groups: ['group3'] })
    expect(groupsAt(store)).toEqual(['group3', 'outside'])
  })

  test('for any list and any requested groups, listed groups match the request and others stay', async () => {
    const all = ['a', 'b', 'c', 'd', 'e']
    const some = fc.subarray(all)
    await fc.assert(
      fc.asyncProperty(some, some, some, async (held, listed, wanted) => {
        const store = new MemoryTarget([{ userID: 'jjackson', groups: held }])
        await provisioned(store, provision({ groups: listed }), { groups: wanted })
        const expected = all.filter((name) => (listed.includes(name) ? wanted.includes(name) : held.includes(name)))
        expect(groupsAt(store)).toEqual(expected)
      }),
    )
  })

  test('that are not a list of texts are an error', () => {
    const { issues } = parseTasks([provision({ groups: 'a' }), provision({ groups: ['a', {}] })])
    expect(issues.list.map(({ path, message }) => `${path.join('.')}: ${message}`)).toEqual([
      '0.groups: "groups" must be a list',
      '1.groups.1: every entry of "groups" must be text',
    ])
  })
})

describe('races', () => {
  test('a concurrently created user is a conflict, unless it is equal', async () => {
    const store = new MemoryTarget()
    let mail = 'other'
    store.before = ({ method }) => {
      if (method === 'createUser') store.put({ userID: 'jjackson', attributes: { mail: [mail] } })
    }
    const run = provisioned(store, provision(), { attributes: { mail: ['mine'] } })
    await expect(run).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(store.stored('jjackson')?.attributes).toEqual({ mail: ['other'] })
    expect(store.methods()).toEqual(['findUser', 'createUser'])
    const again = new MemoryTarget()
    mail = 'mine'
    again.before = ({ method }) => {
      if (method === 'createUser') again.put({ userID: 'jjackson', attributes: { mail: [mail] } })
    }
    await provisioned(again, provision(), { attributes: { mail: ['mine'] } })
  })

  test('a user that is deleted between reading and writing is created', async () => {
    const store = stored()
    store.before = async ({ method, request }) => {
      if (method !== 'syncUser') return
      await store.deleteUser(
        { userID: 'jjackson', attributes: new Attributes(), groups: [] },
        { ...request, audit() {} },
      )
    }
    await provisioned(store, provision(), { attributes: { mail: ['new'] } })
    expect(store.stored('jjackson')?.attributes).toEqual({ mail: ['new'] })
  })

  test('a conflict with another user is thrown', async () => {
    const store = new MemoryTarget()
    const conflict = new GatewayError('CONFLICT', 'the mail address is taken')
    store.before = ({ method }) => {
      if (method === 'createUser') throw conflict
    }
    await expect(provisioned(store, provision(), {})).rejects.toBe(conflict)
    expect(store.methods()).toEqual(['findUser', 'createUser'])
  })

  test('it gives up on a target whose users keep changing', async () => {
    const store = stored()
    const mismatch = new GatewayError('VERSION_MISMATCH', 'again')
    store.before = ({ method }) => {
      if (method === 'syncUser') throw mismatch
    }
    await expect(provisioned(store, provision(), { attributes: { mail: ['x'] } })).rejects.toBe(mismatch)
    expect(store.methods().filter((method) => method === 'syncUser')).toHaveLength(3)
  })
})

describe('an expected version', () => {
  const basedOn = (version: string, target = 'store') => ({ basedOn: { target, version } })

  test('a target that compares and audits in its own transaction is not read before', async () => {
    const users = memoryUserDirectory()
    const passwords = new Passwords(memoryUserDirectory('passwords'), leastCost)
    const store = databaseTarget(users, passwords, { auditsWithin: true })
    onTestFinished(() => store.close())
    await createUser(users, {
      userID: 'jjackson',
      attributes: Attributes.from({ mail: ['old'], sn: ['J'] }),
      groups: ['x'],
    })
    const find = vi.spyOn(store, 'findUser')
    const change = (mail: string, version: string) =>
      provisioned(store, provision(), { attributes: { mail: [mail] }, keepGroups: true, ...basedOn(version) })
    expect(await change('new', '1')).toMatchObject({ changes: 1 })
    expect(find).not.toHaveBeenCalled()
    const stored = await users.lookupUserByLogin('jjackson')
    expect([stored?.attributes.toObject(), stored?.groups]).toEqual([{ mail: ['new'], sn: ['J'] }, ['x']])
    expect(await change('new', '2')).toMatchObject({ changes: 0 })
    await expect(change('newer', '1')).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    await deleteUser(users, 'jjackson')
    await expect(change('newer', '2')).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  })
  const mail = { attributes: { mail: ['new'] }, keepGroups: true }

  test('is passed on, and another one rejects the change without a retry', async () => {
    const store = stored()
    await provisioned(store, provision(), { ...mail, ...basedOn('1') })
    expect(store.stored('jjackson')?.attributes['mail']).toEqual(['new'])
    const stale = provisioned(store, provision(), { attributes: { mail: ['newer'] }, ...basedOn('1') })
    await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(store.methods()).toEqual(['findUser', 'syncUser', 'findUser'])
  })

  test('loses to a change between reading and writing', async () => {
    const store = stored()
    store.before = ({ method }) => {
      if (method === 'syncUser') store.touch('jjackson', ['outside'])
    }
    const run = provisioned(store, provision(), { ...mail, ...basedOn('1') })
    await expect(run).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(store.stored('jjackson')).toMatchObject({ attributes: { mail: ['old'] }, groups: ['outside'] })
  })

  test('loses even if nothing would be written, and if the user no longer exists', async () => {
    const store = stored()
    const same = provisioned(store, provision(), { attributes: { mail: ['old'] }, keepGroups: true, ...basedOn('7') })
    await expect(same).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    const empty = new MemoryTarget()
    await expect(provisioned(empty, provision(), { ...mail, ...basedOn('1') })).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
    expect(empty.stored('jjackson')).toBeUndefined()
  })

  test('of a target without versions is that the user exists: a deleted one is not created again', async () => {
    const store = stored()
    store.before = ({ method }) => {
      if (method === 'syncUser') store.touch('jjackson', ['outside'])
    }
    await provisioned(store, provision(), { ...mail, ...basedOn('*') })
    expect(store.stored('jjackson')).toMatchObject({ attributes: { mail: ['new'] }, groups: ['outside'] })
    store.before = async ({ method, userID, request }) => {
      const user = { userID, attributes: new Attributes(), groups: [] }
      if (method === 'syncUser') await store.deleteUser(user, request)
    }
    const raced = provisioned(store, provision(), { attributes: { mail: ['newer'] }, ...basedOn('*') })
    await expect(raced).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    const late = provisioned(store, provision(), { attributes: { mail: ['newer'] }, ...basedOn('*') })
    await expect(late).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(store.stored('jjackson')).toBeUndefined()
  })

  test('of a membership is compared by a target that audits within its commits, without a read before', async () => {
    const bound = (version: string) => ({
      attributes: { mail: ['old'] },
      groups: ['group1', 'crew'],
      basedOn: { target: 'store', version, group: { name: 'crew', id: '5' } },
    })
    const store = Object.assign(stored(), { auditsWithin: true })
    await provisioned(store, provision(), bound('1'))
    expect(store.stored('jjackson')?.groups).toEqual(['group1', 'crew'])
    await expect(provisioned(store, provision(), bound('1'))).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(store.methods()).toEqual(['syncUser', 'syncUser'])
    const empty = Object.assign(new MemoryTarget(), { auditsWithin: true })
    await expect(provisioned(empty, provision(), bound('1'))).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(empty.methods()).toEqual(['syncUser', 'findUser'])
  })

  test('applies to the first write to its own target, by any copy of the user', async () => {
    const store = stored()
    const other = stored()
    const set = (value: string) => ({ taskType: 'addAttribute', name: 'mail', value })
    const inside = { taskType: 'mapping', strict: 'false', map: [], onSuccess: [set('two'), provision()] }
    const { run } = await startWorkflows({
      workflows: { w: [provision({ target: 'other' }), inside, set('three'), provision()] },
      targets: { store, other },
    })
    await run('w', { ...mail, ...basedOn('1') })
    expect(store.stored('jjackson')?.attributes['mail']).toContain('three')
    expect(other.stored('jjackson')?.attributes['mail']).toEqual(['new'])
  })

  test('does not apply to another account of the target', async () => {
    const store = stored()
    store.put({ userID: 'template', groups: ['group9'] })
    store.touch('template', ['group9'])
    const load = {
      taskType: 'customTask',
      className: 'tasks.LoadGroupsFromTarget',
      params: { target: 'store', nameAttr: 'like' },
    }
    const { run } = await startWorkflows({
      workflows: { w: [load, provision({ attributes: ['mail'] })] },
      targets: { store },
    })
    await run('w', { attributes: { mail: ['new'], like: ['template'] } })
    expect(store.stored('jjackson')).toMatchObject({ attributes: { mail: ['new'] }, groups: ['group9'] })
  })
})

describe('a new login', () => {
  const renamed = { newUserID: 'jsmith', keepGroups: true, attributes: { mail: ['new'] } }

  test('is set along with other changes, and the next target finds the user by the old one', async () => {
    const store = stored()
    const other = stored()
    const { run, audit } = await startWorkflows({
      workflows: { w: [provision(), provision({ target: 'other' }), provision()] },
      targets: { store, other },
    })
    await run('w', renamed)
    for (const target of [store, other]) {
      expect(target.stored('jjackson')).toBeUndefined()
      expect(target.stored('jsmith')).toMatchObject({ attributes: { mail: ['new'] }, groups: ['group1', 'group2'] })
    }
    const renames = audit.rows.filter(({ kind }) => kind === 'entry')
    expect(renames.map(({ target, action, value }) => [target, action, value])).toEqual([
      ['store', 'replace', 'jsmith'],
      ['other', 'replace', 'jsmith'],
    ])
    expect(store.methods().filter((method) => method === 'syncUser')).toHaveLength(1)
  })

  test('is in the audit for a target that reports nothing', async () => {
    const store = new MemoryTarget([{ userID: 'jjackson' }], false)
    const { run, audit } = await startWorkflows({ workflows: { w: [provision()] }, targets: { store } })
    await run('w', { newUserID: 'jsmith', keepGroups: true })
    expect(audit.rows).toMatchObject([{ kind: 'entry', action: 'replace', attribute: 'userID', value: 'jsmith' }])
  })

  test('of a missing user creates the user with it', async () => {
    const store = new MemoryTarget()
    await provisioned(store, provision(), renamed)
    expect(store.stored('jsmith')?.attributes).toEqual({ mail: ['new'] })
    expect(store.stored('jjackson')).toBeUndefined()
  })

  test('is a conflict if taken, and not if it differs only in letter case', async () => {
    const store = stored()
    store.put({ userID: 'JSmith' })
    await expect(provisioned(store, provision(), renamed)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(store.stored('jjackson')?.attributes['mail']).toEqual(['old'])
    await provisioned(store, provision(), { newUserID: 'JJackson', keepGroups: true })
    expect(store.stored('jjackson')).toBeDefined()
  })

  test('is rejected before any write if the target cannot rename', async () => {
    const store = stored()
    const fixed: Target = {
      findUser: store.findUser.bind(store),
      createUser: store.createUser.bind(store),
      syncUser: store.syncUser.bind(store),
      deleteUser: store.deleteUser.bind(store),
    }
    await expect(provisioned(fixed, provision(), renamed)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
    expect(store.methods()).toEqual(['findUser'])
    await expect(provisioned(stored(), provision(), { newUserID: '' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('passes through the mapping, and the password is set under it', async () => {
    const store = new MemoryTarget([{ userID: 'x-jjackson' }])
    const rule = { attribute: 'TREMOLO_USER_ID', source: 'x-${TREMOLO_USER_ID}', sourceType: 'composite', path: [] }
    const mapping = prepareMapping([rule as never], new Issues(), {
      folder: '/',
      refer: () => {},
      mapper: () => undefined,
    })
    const { run } = await startWorkflows({
      workflows: { w: [provision({ setPassword: true })] },
      targets: { store },
      mappings: { store: mapping },
    })
    await run('w', { newUserID: 'jsmith', keepGroups: true, password: 'hunter2' })
    expect(store.stored('x-jsmith')).toBeDefined()
    expect(store.stored('x-jjackson')).toBeUndefined()
    expect(store.passwords.get('x-jsmith')).toBe('hunter2')
  })
})

describe('setPassword', () => {
  test('is set once at each target', async () => {
    const store = new MemoryTarget()
    const second = new MemoryTarget()
    const both = [provision({ setPassword: true }), provision({ target: 'second', setPassword: true })]
    const { run } = await startWorkflows({ workflows: { w: [...both, ...both] }, targets: { store, second } })
    await run('w', { password: 'hunter2' })
    for (const { passwords, methods } of [store, second].map((target) => ({
      passwords: target.passwords,
      methods: target.methods(),
    }))) {
      expect(passwords.get('jjackson')).toBe('hunter2')
      expect(methods.filter((method) => method === 'setUserPassword')).toHaveLength(1)
    }
  })

  test('reports the owners of the account, or the logins if the owner is unknown', async () => {
    const store = new MemoryTarget()
    const own = entryIdentity('people', '1')
    const host = fakeModuleHost({ targets: { store } })
    const spec = provision({ setPassword: true })
    const options = { user: { password: 'hunter2' }, forTarget: () => quietRequest }
    const ownersOf = async (target: string, userID: string) => (`${target} ${userID}` === 'store jjackson' ? [own] : [])
    const known = await runTask(spec, { ...options, host: { ...host, targets: { ...host.targets, ownersOf } } })
    expect(known.passwords).toEqual([{ target: 'store', logins: ['jjackson'], owners: [own] }])
    const unknown = await runTask(spec, { ...options, user: { password: 'hunter2' }, host })
    expect(unknown.passwords).toEqual([{ target: 'store', logins: ['jjackson'], owners: [] }])
  })

  test('sets nothing without a password, or if not configured', async () => {
    const store = new MemoryTarget()
    await provisioned(store, provision({ setPassword: true }), {})
    await provisioned(store, provision(), { password: 'hunter2' })
    expect(store.passwords.size).toBe(0)
  })

  test('is rejected by a target that cannot store passwords', async () => {
    const store = new MemoryTarget()
    const bare: Target = {
      findUser: store.findUser.bind(store),
      createUser: store.createUser.bind(store),
      syncUser: store.syncUser.bind(store),
      deleteUser: store.deleteUser.bind(store),
    }
    const run = provisioned(bare, provision({ setPassword: true }), { password: 'hunter2' })
    await expect(run).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  })
})

test("the target's own mapping comes first, login included", async () => {
  const store = new MemoryTarget()
  const rule = (attribute: string, source: string, sourceType: 'user' | 'static') => ({
    attribute,
    source,
    sourceType,
    path: [],
  })
  const mapping = prepareMapping(
    [
      rule('TREMOLO_USER_ID', 'mail', 'user'),
      rule('login', 'TREMOLO_USER_ID', 'user'),
      rule('kind', 'person', 'static'),
    ],
    new Issues(),
    { folder: '/', refer: () => {}, mapper: () => undefined },
  )
  const workflows = { w: [provision()], bye: [{ taskType: 'delete', target: 'store' }] }
  const { run } = await startWorkflows({ workflows, targets: { store }, mappings: { store: mapping } })
  await run('w', { attributes: { mail: ['jj@example.com'] }, groups: ['g'] })
  expect(store.stored('jj@example.com')).toEqual({
    attributes: { login: ['jjackson'], kind: ['person'] },
    groups: ['g'],
  })
  await run('bye', { attributes: { mail: ['jj@example.com'] } })
  expect(store.stored('jj@example.com')).toBeUndefined()
})
