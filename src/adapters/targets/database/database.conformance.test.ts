import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { databaseTarget } from './database.ts'
import { Passwords } from './password-hash.ts'

onEachDatabase('the database target', (freshUrl) => {
  async function open() {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
    await storage.ready()
    const users = storage.userDirectory({ name: 'people' })
    const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
    const target = databaseTarget(users, passwords)
    const close = async (): Promise<void> => {
      await target.close()
      await storage.close()
    }
    return { target, users, passwords, close }
  }

  targetConformance('database', open, { test: (name, run) => test(name, run) })

  test('groups: created once, found without members, deleted once, each audited', async () => {
    const { target, close } = await open()
    const changes: TargetChange[] = []
    const request = { audit: (change: TargetChange) => changes.push(change) } as unknown as TargetRequest
    await target.createGroup('crew', { description: ['Keeps things running'] }, request)
    await expect(target.createGroup('CREW', {}, request)).rejects.toMatchObject({ code: 'CONFLICT' })
    await target.createUser({ userID: 'ada', attributes: new Attributes(), groups: ['crew'] }, [], request)
    expect(await target.findGroup('Crew')).toMatchObject({ name: 'crew', members: [] })
    expect(await target.lookupGroupByName('crew')).toMatchObject({ members: ['ada'] })
    await target.deleteGroup('crew', request)
    await target.deleteGroup('crew', request)
    expect(await target.lookupUserByLogin('ada')).toMatchObject({ groups: [] })
    const entries = changes.filter((change) => change.attribute === 'name')
    expect(entries.map(({ action, value }) => `${action} ${value}`)).toEqual(['add crew', 'delete crew'])
    await close()
  })

  test('a password is stored as a hash, by the user’s id, beside the users, audited with its commit and never shown', async () => {
    const { target, users, passwords, close } = await open()
    const ada = { userID: 'ada', attributes: Attributes.from({ mail: ['ada@x.org'] }), groups: [] }
    const recorded: TargetChange[] = []
    let refuses = false
    const request = {
      audit: (change: TargetChange) => recorded.push(change),
      auditWithin: async (_transaction: object, changes: readonly TargetChange[]) => {
        if (refuses) throw new Error('the audit cannot be written')
        recorded.push(...changes)
        return true
      },
    } as unknown as TargetRequest
    const secret = 'correct horse battery'
    await expect(target.setUserPassword(ada, secret, request)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await target.createUser(ada, ['mail'], request)
    const { id, version } = (await target.lookupUserByLogin('ada')) ?? {}
    for (const bad of ['short', 'x'.repeat(1025), 'with a \0 within']) {
      await expect(target.setUserPassword(ada, bad, request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    recorded.length = 0
    refuses = true
    await expect(target.setUserPassword(ada, secret, request)).rejects.toThrow(/audit/)
    expect(await passwords.check(id, secret)).toBe(false)
    refuses = false
    await target.setUserPassword({ ...ada, userID: 'ADA' }, secret, request)
    const change = { subject: 'attribute', action: 'replace', attribute: 'password' }
    expect(recorded).toEqual([change, { ...change, audited: true }])
    expect([await passwords.check(id, secret), await passwords.check(id, 'another one')]).toEqual([true, false])
    await target.setUserPassword(ada, 'another one', request)
    expect([await passwords.check(id, secret), await passwords.check(id, 'another one')]).toEqual([false, true])

    const stored = await target.lookupUserByLogin('ada')
    expect(stored?.version).toBe(version)
    expect([...(stored?.attributes.names() ?? [])]).toEqual(['mail'])
    const any = { kind: 'substring', attribute: 'hash', initial: '$argon2id', any: [] } as const
    for (const filter of [any, { ...any, attribute: 'password' }, { ...any, attribute: 'userPassword' }]) {
      expect((await users.searchUsers({ filter, offset: 0, limit: 5 })).total).toBe(0)
    }
    expect(JSON.stringify(recorded)).not.toMatch(/argon2|another one|correct horse/)

    await target.deleteUser(ada, request)
    expect(await passwords.any()).toBe(false)
    await target.createUser(ada, ['mail'], request)
    expect(await passwords.check((await target.lookupUserByLogin('ada'))?.id, 'another one')).toBe(false)
    await close()
  })

  test('one of identical groups that must be new and are created at the same time is created', async () => {
    const { target, close } = await open()
    const request = { audit() {} } as unknown as TargetRequest
    const attempts = await Promise.allSettled(
      Array.from({ length: 10 }, () => target.createGroup('crew', { a: ['1'] }, request, { mustBeNew: true })),
    )
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason.code] : []))
    expect(refused).toEqual(Array(9).fill('CONFLICT'))
    await target.createGroup('crew', { a: ['1'] }, request)
    await close()
  })

  test('a stale version is rejected, and nothing changes', async () => {
    const { target, close } = await open()
    const request = { audit() {} } as unknown as TargetRequest
    const user = (mail: string) => ({ userID: 'ada', attributes: Attributes.from({ mail: [mail] }), groups: [] })
    await target.createUser(user('one@x.org'), ['mail'], request)
    const { version = '' } = (await target.lookupUserByLogin('ada')) ?? {}
    const options = { addOnly: false, attributes: ['mail'], keepGroups: true, expectedVersion: version }
    await target.syncUser(user('two@x.org'), options, request)
    await expect(target.syncUser(user('three@x.org'), options, request)).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
    expect((await target.lookupUserByLogin('ada'))?.attributes.first('mail')).toBe('two@x.org')
    await close()
  })

  test('a change and its audit are one commit: neither exists without the other', async () => {
    const { target, close } = await open()
    const user = (mail: string) => ({ userID: 'ada', attributes: Attributes.from({ mail: [mail] }), groups: [] })
    const recorded: string[] = []
    const recording: TargetRequest['auditWithin'] = async (transaction, changes) => {
      expect(transaction).toHaveProperty('query')
      recorded.push(...changes.map(({ action, attribute }) => `${action} ${attribute}`))
      return true
    }
    const elsewhere: TargetRequest['auditWithin'] = async () => false
    const marks: (boolean | undefined)[] = []
    const refusing: TargetRequest['auditWithin'] = async () => {
      throw new Error('the audit cannot be written')
    }
    const request = (auditWithin: TargetRequest['auditWithin']) =>
      ({
        audit: ({ audited }: TargetChange) => marks.push(audited),
        auditWithin,
      }) as Partial<TargetRequest> as TargetRequest
    const sync = { addOnly: false, attributes: ['mail'], keepGroups: true }
    await expect(target.createUser(user('one@x.org'), ['mail'], request(refusing))).rejects.toThrow(/audit/)
    expect(await target.lookupUserByLogin('ada')).toBeUndefined()
    await target.createUser(user('one@x.org'), ['mail'], request(recording))
    await expect(target.syncUser(user('two@x.org'), sync, request(refusing))).rejects.toThrow(/audit/)
    expect((await target.lookupUserByLogin('ada'))?.attributes.first('mail')).toBe('one@x.org')
    await target.syncUser(user('two@x.org'), sync, request(recording))
    await expect(target.deleteUser(user(''), request(refusing))).rejects.toThrow(/audit/)
    expect(await target.lookupUserByLogin('ada')).toBeDefined()
    await target.deleteUser(user(''), request(recording))
    expect(recorded).toEqual(['add userID', 'add mail', 'replace mail', 'delete userID'])
    expect(marks).toEqual([true, true, true, true])
    await target.createUser(user('one@x.org'), [], request(elsewhere))
    expect(marks.slice(4)).toEqual([undefined])

    await expect(target.createGroup('crew', {}, request(refusing))).rejects.toThrow(/audit/)
    expect(await target.findGroup('crew')).toBeUndefined()
    await target.createGroup('crew', { description: ['All'] }, request(recording))
    await expect(target.deleteGroup('crew', request(refusing))).rejects.toThrow(/audit/)
    expect(await target.findGroup('crew')).toBeDefined()
    await target.deleteGroup('CREW', request(recording))
    expect(recorded.slice(4)).toEqual(['add name', 'add description', 'delete name'])
    expect(marks.slice(5)).toEqual([true, true, true])
    await close()
  })
})
