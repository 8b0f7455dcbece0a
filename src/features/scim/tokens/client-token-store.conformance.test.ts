import { expect, test } from 'vitest'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { newTokenText } from './client-token.ts'

const hour = 3600_000
const inMillis = (millis: number) => new Date(Date.now() + millis)
const token = (name = 'default', expires?: Date, client = 'okta') => ({
  id: newId(),
  client,
  name,
  text: newTokenText(),
  createdBy: 'Grace',
  expires,
})
const row = (action: AuditEntry['action']): AuditEntry => ({
  id: newId(),
  time: new Date(),
  requestor: 'operator',
  subject: 'okta',
  workflow: { id: 't', name: 'scim token' },
  target: 'gatehouse',
  kind: 'entry',
  action,
  attribute: 'scimToken',
  value: 'default',
})

onEachDatabase('tokens of SCIM clients', (freshUrl) => {
  test('are found by their text only, in every process, and stored as a hash', async () => {
    const { one, two, sql } = await openStores(await freshUrl())
    const given = token('default', inMillis(hour))
    await one.clientTokens.add(given, [row('add')])
    const { text, ...shown } = given
    expect(await two.clientTokens.find(text)).toEqual({ ...shown, created: expect.any(Date), isOfTenant: false })
    expect(await two.clientTokens.find(newTokenText())).toBeUndefined()
    expect(await two.clientTokens.find(`${text}\0`)).toBeUndefined()
    expect(JSON.stringify(await sql('select * from scim_tokens'))).not.toContain(text)
    expect((await one.audit.list({ limit: 5 })).rows).toMatchObject([{ action: 'add', value: 'default' }])
  })

  test('are found until they expire, by the clock of the database', async () => {
    const { one, sql } = await openStores(await freshUrl())
    const given = token('default', inMillis(hour))
    await one.clientTokens.add(given)
    await sql(`update scim_tokens set expires = ${Date.now() - 1}`)
    expect(await one.clientTokens.find(given.text)).toBeUndefined()
    expect(await one.clientTokens.list('okta')).toMatchObject([{ name: 'default' }])
    await expect(one.clientTokens.add(token('other', inMillis(-1)))).rejects.toThrow('must expire in the future')
    // A name is free when its token can no longer be used.
    await one.clientTokens.add(token('default'))
    await sql(`update scim_tokens set expires = ${Date.now() - 91 * 24 * hour} where expires is not null`)
    await one.clientTokens.prune()
    expect(await one.clientTokens.list()).toHaveLength(1)
  })

  test('of one name are one, also in a race', async () => {
    const { one, two } = await openStores(await freshUrl())
    const tries = Array.from({ length: 6 }, (_, n) => (n % 2 === 0 ? one : two).clientTokens.add(token()))
    const outcomes = await Promise.allSettled(tries)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason.code).toBe('CONFLICT')
    await two.clientTokens.add(token('default', undefined, 'entra'))
    const names = Array.from({ length: 19 }, (_, n) => two.clientTokens.add(token(`n${n}`)))
    await Promise.all(names)
    await expect(one.clientTokens.add(token('one-more'))).rejects.toThrow('20 is the most')
  })

  test('belong to one client for all spellings of its name', async () => {
    const { one, two, sql } = await openStores(await freshUrl())
    const tries = ['acme', 'Acme', 'ACME'].map((client, n) =>
      (n % 2 === 0 ? one : two).clientTokens.add(token('default', undefined, client)),
    )
    const outcomes = await Promise.allSettled(tries)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const [{ client } = { client: '' }] = await one.clientTokens.list()
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue
      expect(outcome.reason).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining(`"${client}"`) })
    }
    await sql(`update scim_tokens set revoked = ${Date.now() - 1}`)
    await one.clientTokens.add(token('default', undefined, 'aCME'))
  })

  test('are rotated with an overlap, and the former one never lasts longer than before', async () => {
    const { one, two } = await openStores(await freshUrl())
    await expect(one.clientTokens.rotate(token(), hour)).rejects.toThrow('has no token "default"')
    const [first, second, third] = [token('default', inMillis(hour)), token(), token()]
    await one.clientTokens.add(first)
    await two.clientTokens.rotate(second, 24 * hour, [row('replace')])
    const found = await one.clientTokens.find(first.text)
    expect(found?.expires).toEqual(first.expires)
    expect(await one.clientTokens.find(second.text)).toMatchObject({ id: second.id })
    await two.clientTokens.rotate(third, 0)
    expect(await one.clientTokens.find(second.text)).toBeUndefined()
    expect(await one.clientTokens.find(first.text)).toBeUndefined()
    expect(await one.clientTokens.find(third.text)).toMatchObject({ id: third.id })
    expect((await one.audit.list({ limit: 5 })).rows).toMatchObject([{ action: 'replace' }])
  })

  test('are revoked at once for every process, also those that overlap', async () => {
    const { one, two } = await openStores(await freshUrl())
    const [first, second] = [token(), token()]
    await one.clientTokens.add(first)
    await one.clientTokens.rotate(second, hour)
    expect(await one.clientTokens.revoke('entra', 'default', 'Grace', [row('delete')])).toBe(0)
    expect(await one.clientTokens.revoke('okta', 'default', 'Grace', [row('delete')])).toBe(2)
    expect(await one.clientTokens.revoke('okta', 'default', 'Grace', [row('delete')])).toBe(0)
    for (const { text } of [first, second]) expect(await two.clientTokens.find(text)).toBeUndefined()
    expect((await two.clientTokens.list()).every(({ revoked, revokedBy }) => revoked && revokedBy === 'Grace')).toBe(
      true,
    )
    expect((await one.audit.list({ limit: 5 })).rows).toHaveLength(1)
    // A rotation that comes after a revocation does not bring a client back.
    await expect(two.clientTokens.rotate(token(), hour)).rejects.toThrow('has no token')
  })

  test('are revoked one by one', async () => {
    const { one, two } = await openStores(await freshUrl())
    const [first, second] = [token(), token('other')]
    for (const given of [first, second]) await one.clientTokens.add(given)
    expect(await one.clientTokens.revokeById(first.id, 'Ada', [row('delete')])).toBe(true)
    expect(await two.clientTokens.revokeById(first.id, 'Eve', [row('delete')])).toBe(false)
    expect(await two.clientTokens.get(first.id)).toMatchObject({ revokedBy: 'Ada', createdBy: 'Grace' })
    expect(await two.clientTokens.find(first.text)).toBeUndefined()
    expect(await two.clientTokens.find(second.text)).toMatchObject({ name: 'other' })
    expect((await one.audit.list({ limit: 5 })).rows).toHaveLength(1)
    for (const id of ['nothing', 'a\0', '\ud800']) expect(await one.clientTokens.get(id)).toBeUndefined()
  })

  test('note a use at most once a minute', async () => {
    const { one, two, sql } = await openStores(await freshUrl())
    const given = token()
    await one.clientTokens.add(given)
    await one.clientTokens.use(given.id)
    const first = (await two.clientTokens.list())[0]?.lastUsed
    expect(Math.abs((first?.getTime() ?? 0) - Date.now())).toBeLessThan(60_000)
    await two.clientTokens.use(given.id)
    expect((await one.clientTokens.list())[0]?.lastUsed).toEqual(first)
    await sql('update scim_tokens set last_used = 5')
    await two.clientTokens.use(given.id)
    expect((await one.clientTokens.list())[0]?.lastUsed?.getTime()).toBeGreaterThan(5)
  })

  test('that expire soon are counted', async () => {
    const { one } = await openStores(await freshUrl())
    for (const [name, expires] of [
      ['soon', inMillis(24 * hour)],
      ['later', inMillis(30 * 24 * hour)],
      ['never', undefined],
      ['revoked', inMillis(hour)],
    ] as const)
      await one.clientTokens.add(token(name, expires))
    await one.clientTokens.revoke('okta', 'revoked', 'Grace')
    expect(await one.clientTokens.expiring()).toBe(1)
  })

  test('have names that a shell and a distinguished name take', async () => {
    const { one } = await openStores(await freshUrl())
    for (const odd of ['', 'a b', 'a,ou=x', '../x', 'ä', 'x'.repeat(65), 'a\0']) {
      await expect(one.clientTokens.add(token(odd))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      await expect(one.clientTokens.add(token('x', undefined, odd))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    expect(await one.clientTokens.list()).toEqual([])
  })
})
