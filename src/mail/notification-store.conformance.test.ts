import { expect, test } from 'vitest'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { minute } from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'

const ann = userRef('ann').identity
const bob = userRef('bob').identity

const digest = (fresh: ReadonlySet<string>): NewMail => ({
  id: [...fresh].join(' '),
  recipient: 'ann@example.com',
  subject: 'Digest',
  text: [...fresh].join(' '),
})

onEachDatabase('notification settings and digests', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('keep what a user chose, and what applied before', async () => {
    const { one, two } = await open()
    expect((await two.notifications.settingsOf([ann, bob])).size).toBe(0)
    await one.notifications.save(ann, { choices: { approval: 'digest' }, language: 'de' })
    const first = (await two.notifications.settingsOf([ann, bob])).get(ann)
    expect(first).toMatchObject({ language: 'de', choices: { approval: { mail: 'digest', before: 'now' } } })
    await one.notifications.save(ann, { choices: { approval: 'digest', request: 'never' } })
    const second = (await two.notifications.settingsOf([ann])).get(ann)
    expect(second).toMatchObject({ language: 'de', choices: { request: { mail: 'never', before: 'now' } } })
    expect(second?.choices.approval).toEqual(first?.choices.approval)
    await one.notifications.save(ann, { choices: { approval: 'now' } })
    expect((await two.notifications.settingsOf([ann])).get(ann)?.choices.approval).toMatchObject({
      mail: 'now',
      before: 'digest',
    })
  })

  test('keep all choices of calls at the same time, also the first ones', async () => {
    const { one, two } = await open()
    for (const login of ['a', 'b', 'c', 'd']) {
      const user = userRef(login).identity
      await Promise.all([
        one.notifications.save(user, { choices: { approval: 'digest' } }),
        two.notifications.save(user, { choices: { request: 'never' } }),
        two.notifications.save(user, { choices: {}, language: 'de' }),
      ])
      expect((await one.notifications.settingsOf([user])).get(user)).toMatchObject({
        language: 'de',
        choices: { approval: { mail: 'digest' }, request: { mail: 'never' } },
      })
    }
  })

  test('find users with a digest, page by page', async () => {
    const { one } = await open()
    const some = ['a', 'b', 'c'].map((login) => userRef(login).identity)
    for (const user of some) await one.notifications.save(user, { choices: { request: 'digest' } })
    await one.notifications.save(bob, { choices: { request: 'never' } })
    const [first, ...rest] = [...some].sort()
    expect(await one.notifications.digestReaders('', 1)).toEqual([first])
    expect(await one.notifications.digestReaders(first ?? '', 10)).toEqual(rest.filter((user) => user !== bob))
    // What happened before the change is still to be reported.
    await one.notifications.save(first ?? ann, { choices: { request: 'now' } })
    expect(await one.notifications.digestReaders('', 10)).toContain(first)
    await one.notifications.save(first ?? ann, { choices: { request: 'never' } })
    expect(await one.notifications.digestReaders('', 10)).not.toContain(first)
  })

  test('report every entry once, whoever writes the digest', async () => {
    const { one, two } = await open()
    const entries = ['approval:1', 'request:2']
    const outcomes = await Promise.all(
      [one, two, one, two].map((stores) => stores.notifications.addDigest(ann, entries, digest)),
    )
    expect(outcomes.filter((added) => added)).toHaveLength(1)
    expect(await two.notifications.addDigest(ann, [...entries, 'request:3'], digest)).toBe(true)
    expect(await two.notifications.addDigest(bob, ['approval:1'], digest)).toBe(true)
    expect([...(await one.notifications.unreported(ann, [...entries, 'access:4']))]).toEqual(['access:4'])
    const texts = (await one.mails.claim(10, minute)).map(({ text }) => text)
    expect(texts.sort()).toEqual(['approval:1', 'approval:1 request:2', 'request:3'])
  })

  test('report an entry again after its mail could not be written', async () => {
    const { one } = await open()
    const failing = one.notifications.addDigest(ann, ['request:1'], () => {
      throw new Error('killed')
    })
    await expect(failing).rejects.toThrow('killed')
    expect(await one.notifications.addDigest(ann, ['request:1'], digest)).toBe(true)
    expect(await one.mails.claim(10, minute)).toHaveLength(1)
  })

  test('forget what was reported long ago', async () => {
    const { one } = await open()
    await one.notifications.addDigest(ann, ['request:1'], digest)
    expect(await one.notifications.pruneDigests(new Date(Date.now() - minute))).toBe(0)
    expect(await one.notifications.pruneDigests(new Date(Date.now() + minute))).toBe(1)
    expect((await one.notifications.unreported(ann, ['request:1'])).size).toBe(1)
  })
})
