import { describe, expect, test } from 'vitest'
import { AuditStore } from '#audit/store/audit-store.ts'
import { entryIdentity, issuerIdentity } from '#identity/identity.ts'
import { secretHash } from '#kernel/ids.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { memorySecondFactors } from '#testing/login/memory-second-factors.ts'
import { subject } from '#testing/login/subjects.ts'
import type { NewSecondFactor } from './second-factor.ts'
import { SecondFactorStore } from './second-factor-store.ts'
import { maxFactors } from './second-factors.ts'

const ann = subject('uid=ann,ou=people,o=Tremolo')
const change = { requestId: 'request-1' }
const totp = (id: string): NewSecondFactor => ({
  id,
  kind: 'totp',
  name: 'Phone',
  secret: { secret: 'S3CR3T' },
  counter: 0,
})

describe('second factors', () => {
  test('belong to the identity, not to the login or the name of the entry', async () => {
    const factors = memorySecondFactors()
    await factors.add(ann, totp('a'), change)
    const renamed = { ...subject('uid=anna,ou=people,o=Tremolo'), identity: ann.identity }
    expect(await factors.of(renamed)).toHaveLength(1)
    for (const other of [
      { ...ann, identity: entryIdentity('people', '2') },
      { ...ann, identity: issuerIdentity('https://idp.example.test', 'ann') },
    ]) {
      expect(await factors.of(other)).toEqual([])
      expect(await factors.remove(other, 'a', change)).toBe(false)
    }
    expect(await factors.use(renamed, { id: 'a', counter: 0 }, 1)).toBe(true)
  })

  test('are stored encrypted, and bound to their id', async () => {
    const database = memoryDatabase()
    const factors = memorySecondFactors(database)
    await factors.add(ann, totp('a'), change)
    const rows = await new SecondFactorStore(database).ofOwner(secretHash(ann.identity))
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain('S3CR3T')
    expect(rows[0]?.owner).not.toContain('ann')
    expect((await factors.of(ann))[0]?.secret).toEqual({ secret: 'S3CR3T' })
  })

  test('are audited when added and removed, without secrets', async () => {
    const database = memoryDatabase()
    const factors = memorySecondFactors(database)
    const added = await factors.add(ann, totp('a'), change)
    const [code = ''] = added.added ? (added.recoveryCodes ?? []) : []
    await factors.useRecoveryCode(ann, code, change)
    await factors.renewRecoveryCodes(ann, change)
    await factors.remove(ann, 'a', change)
    const { rows } = await new AuditStore(database).list({ limit: 10 })
    expect(rows.toReversed().map(({ action, value, subject: who }) => `${who} ${action} ${value}`)).toEqual([
      'ann add totp "Phone"',
      'ann delete a recovery code',
      'ann replace recovery codes',
      'ann delete totp "Phone"',
    ])
    expect(JSON.stringify(rows)).not.toContain(code)
  })

  test('are reset by an operator for the identity, with the reason in the audit', async () => {
    const database = memoryDatabase()
    const factors = memorySecondFactors(database)
    await factors.add(ann, totp('a'), change)
    await factors.add(ann, totp('b'), change)
    const byOperator = { by: 'olga', reason: 'lost phone', requestId: 'request-2' }
    expect(await factors.reset({ ...ann, identity: entryIdentity('people', '2') }, byOperator)).toBe(0)
    expect(await factors.reset(ann, byOperator)).toBe(2)
    expect([await factors.of(ann), await factors.recoveryCodes(ann)]).toEqual([[], 0])
    const { rows } = await new AuditStore(database).list({ requestor: 'olga', limit: 10 })
    expect(rows).toMatchObject([{ subject: 'ann', action: 'delete', value: 'all', reason: 'lost phone' }])
  })

  test('are limited in number, and can be added as the first only', async () => {
    const factors = memorySecondFactors()
    for (let i = 0; i < maxFactors; i++) expect((await factors.add(ann, totp(`f${i}`), change)).added).toBe(true)
    expect((await factors.add(ann, totp('more'), change)).added).toBe(false)
    const bob = subject('uid=bob,o=Tremolo')
    expect((await factors.add(bob, totp('b1'), { ...change, onlyAsFirst: true })).added).toBe(true)
    expect((await factors.add(bob, totp('b2'), { ...change, onlyAsFirst: true })).added).toBe(false)
  })
})

describe('recovery codes', () => {
  test('come with the first factor, work once, and are accepted as users type them', async () => {
    const factors = memorySecondFactors()
    const first = await factors.add(ann, totp('a'), change)
    const codes = first.added ? (first.recoveryCodes ?? []) : []
    expect(codes).toHaveLength(10)
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^(?:[a-z0-9]{4}-){3}[a-z0-9]{4}$/)
    expect(await factors.add(ann, totp('b'), change)).toEqual({ added: true, recoveryCodes: undefined })
    const [one = '', two = ''] = codes
    expect(await factors.useRecoveryCode(ann, ` ${one.toUpperCase().replaceAll('-', ' ')} `, change)).toBe(true)
    expect(await factors.useRecoveryCode(ann, one, change)).toBe(false)
    expect(await factors.recoveryCodes(ann)).toBe(9)
    expect(await factors.useRecoveryCode(subject('uid=bob,o=Tremolo'), two, change)).toBe(false)
    const renewed = await factors.renewRecoveryCodes(ann, change)
    expect(await factors.useRecoveryCode(ann, two, change)).toBe(false)
    expect(await factors.useRecoveryCode(ann, renewed?.[0] ?? '', change)).toBe(true)
  })

  test.each(['', 'x', '0000-0000-0000-000l', `${'a'.repeat(16)}b`, 'a'.repeat(100_000)])(
    '"%s" is rejected',
    async (code) => {
      const factors = memorySecondFactors()
      await factors.add(ann, totp('a'), change)
      expect(await factors.useRecoveryCode(ann, code, change)).toBe(false)
    },
  )

  test('need a factor, and are deleted with the last one', async () => {
    const factors = memorySecondFactors()
    expect(await factors.renewRecoveryCodes(ann, change)).toBeUndefined()
    await factors.add(ann, totp('a'), change)
    await factors.remove(ann, 'a', change)
    expect(await factors.recoveryCodes(ann)).toBe(0)
  })
})
