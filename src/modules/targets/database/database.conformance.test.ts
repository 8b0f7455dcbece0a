import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { DatabaseTarget } from '#modules/targets/database/database-target.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import type { TargetChange, TargetRequest } from '#sdk/target.ts'
import { openStorage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'

onEachDatabase('the database target', (freshUrl) => {
  async function open() {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
    await storage.ready()
    const target = new DatabaseTarget(storage.userDirectory({ name: 'people' }))
    const close = async (): Promise<void> => {
      await target.close()
      await storage.close()
    }
    return { target, close }
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

  test('a stale version is refused, and nothing is changed', async () => {
    const { target, close } = await open()
    const request = { audit() {} } as unknown as TargetRequest
    const user = (mail: string) => ({ userID: 'ada', attributes: Attributes.from({ mail: [mail] }), groups: [] })
    await target.createUser(user('one@x.org'), ['mail'], request)
    const { version = '' } = (await target.findUser('ada')) ?? {}
    const options = { addOnly: false, attributes: ['mail'], keepGroups: true, expectedVersion: version }
    await target.syncUser(user('two@x.org'), options, request)
    await expect(target.syncUser(user('three@x.org'), options, request)).rejects.toMatchObject({
      code: 'VERSION_MISMATCH',
    })
    expect((await target.findUser('ada'))?.attributes.first('mail')).toBe('two@x.org')
    await close()
  })

  test('a change and its audit are one commit: neither is there without the other', async () => {
    const { target, close } = await open()
    const user = (mail: string) => ({ userID: 'ada', attributes: Attributes.from({ mail: [mail] }), groups: [] })
    const told: string[] = []
    const recording: TargetRequest['auditWithin'] = async (transaction, changes) => {
      expect(transaction).toHaveProperty('query')
      told.push(...changes.map(({ action, attribute }) => `${action} ${attribute}`))
    }
    const refusing: TargetRequest['auditWithin'] = async () => {
      throw new Error('the audit cannot be written')
    }
    const request = (auditWithin: TargetRequest['auditWithin']) =>
      ({ audit() {}, auditWithin }) as unknown as TargetRequest
    const sync = { addOnly: false, attributes: ['mail'], keepGroups: true }
    await expect(target.createUser(user('one@x.org'), ['mail'], request(refusing))).rejects.toThrow(/audit/)
    expect(await target.findUser('ada')).toBeUndefined()
    await target.createUser(user('one@x.org'), ['mail'], request(recording))
    await expect(target.syncUser(user('two@x.org'), sync, request(refusing))).rejects.toThrow(/audit/)
    expect((await target.findUser('ada'))?.attributes.first('mail')).toBe('one@x.org')
    await target.syncUser(user('two@x.org'), sync, request(recording))
    await expect(target.deleteUser(user(''), request(refusing))).rejects.toThrow(/audit/)
    expect(await target.findUser('ada')).toBeDefined()
    await target.deleteUser(user(''), request(recording))
    expect(told).toEqual(['add userID', 'add mail', 'replace mail', 'delete userID'])
    await close()
  })
})
