import { describe, expect, test } from 'vitest'
import { nameKey, SecondFactors } from '#engine/second-factors/second-factors.ts'
import { entryIdentity, issuerIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { secretHash } from '#kernel/ids.ts'
import { maxFactors, type NewSecondFactor } from '#sdk/second-factors.ts'
import { fakeSecretBox } from '#testing/fake-login-services.ts'
import { memorySecondFactorStore, memorySecondFactors } from '#testing/memory-second-factors.ts'
import { subject } from '#testing/subjects.ts'

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
  test('are of the identity, not of the login or the name of the entry', async () => {
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

  test('and recovery codes that were stored by name become those of the identity', async () => {
    const store = memorySecondFactorStore()
    const secrets = fakeSecretBox('second factor')
    const before = new SecondFactors({ store, secrets, clock: systemClock })
    // As versions before this one stored it: the name's key was the owner.
    const data = await secrets.seal({ secret: 'S3CR3T' }, 'a')
    const former = nameKey(ann)
    const codes = ['aaaa-aaaa-aaaa-aaaa', 'bbbb-bbbb-bbbb-bbbb']
    const hashes = codes.map((code) => secretHash(JSON.stringify(['recovery code', former, code.replaceAll('-', '')])))
    const row = { id: 'a', owner: former, ownerName: '', kind: 'totp', name: 'Phone', counter: 0, data }
    await store.add(row, 5, hashes, [])
    expect(await before.recoveryCodes(ann)).toBe(2)
    expect(await before.useRecoveryCode(ann, codes[0] ?? '', change)).toBe(true)
    expect(await before.useRecoveryCode(ann, codes[0] ?? '', change)).toBe(false)
    const renamed = { ...subject('uid=anna,ou=people,o=Tremolo'), identity: ann.identity }
    expect((await before.of(renamed)).map(({ id }) => id)).toEqual(['a'])
    expect(await before.of({ ...ann, identity: entryIdentity('people', '2') })).toEqual([])
  })

  test('that were stored by name cannot be taken away by a caller without an entry who has the same name', async () => {
    const store = memorySecondFactorStore()
    const secrets = fakeSecretBox('second factor')
    const factors = new SecondFactors({ store, secrets, clock: systemClock })
    const data = await secrets.seal({ secret: 'S3CR3T' }, 'a')
    const row = { id: 'a', owner: nameKey(ann), ownerName: '', kind: 'totp', name: 'Phone', counter: 0, data }
    await store.add(row, 5, [], [])
    const claimed = { ...subject('uid=ANN,ou=people,o=Tremolo'), dn: ann.dn.claimed() }
    const [one, two] = ['one', 'two'].map((name) => ({
      ...claimed,
      identity: issuerIdentity(`https://${name}.test`, 'ANN'),
    }))
    // The row does not say whose of them it is: each must show it, as before.
    for (const caller of [one, two, one]) expect(await factors.of(caller ?? claimed)).toHaveLength(1)
    const added = await factors.add(one ?? claimed, totp('b'), { ...change, onlyAsFirst: true })
    expect(added.added).toBe(false)
    expect(await factors.of(ann)).toHaveLength(1)
    expect(await factors.of(one ?? claimed)).toEqual([])
    expect(await factors.of(ann)).toHaveLength(1)
  })

  test('are stored sealed, and bound to their id', async () => {
    const store = memorySecondFactorStore()
    const factors = new SecondFactors({ store, secrets: fakeSecretBox('second factor'), clock: systemClock })
    await factors.add(ann, totp('a'), change)
    const rows = await store.ofOwner(secretHash(ann.identity))
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain('S3CR3T')
    expect(rows[0]?.owner).not.toContain('ann')
    expect((await factors.of(ann))[0]?.secret).toEqual({ secret: 'S3CR3T' })
  })

  test('are written down when they come and go, without what is secret', async () => {
    const factors = memorySecondFactors()
    const added = await factors.add(ann, totp('a'), change)
    const [code = ''] = added.added ? (added.recoveryCodes ?? []) : []
    await factors.useRecoveryCode(ann, code, change)
    await factors.renewRecoveryCodes(ann, change)
    await factors.remove(ann, 'a', change)
    expect(factors.audited.map(({ action, value, subject: who }) => `${who} ${action} ${value}`)).toEqual([
      'ann add totp "Phone"',
      'ann delete a recovery code',
      'ann replace recovery codes',
      'ann delete totp "Phone"',
    ])
    expect(JSON.stringify(factors.audited)).not.toContain(code)
  })

  test('are no more than some, and a first one is the first', async () => {
    const factors = memorySecondFactors()
    for (let i = 0; i < maxFactors; i++) expect((await factors.add(ann, totp(`f${i}`), change)).added).toBe(true)
    expect((await factors.add(ann, totp('more'), change)).added).toBe(false)
    const bob = subject('uid=bob,o=Tremolo')
    expect((await factors.add(bob, totp('b1'), { ...change, onlyAsFirst: true })).added).toBe(true)
    expect((await factors.add(bob, totp('b2'), { ...change, onlyAsFirst: true })).added).toBe(false)
  })
})

describe('recovery codes', () => {
  test('come with the first factor, count once, and are read as people type them', async () => {
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
    '"%s" is none',
    async (code) => {
      const factors = memorySecondFactors()
      await factors.add(ann, totp('a'), change)
      expect(await factors.useRecoveryCode(ann, code, change)).toBe(false)
    },
  )

  test('are for somebody who has a factor, and go with the last', async () => {
    const factors = memorySecondFactors()
    expect(await factors.renewRecoveryCodes(ann, change)).toBeUndefined()
    await factors.add(ann, totp('a'), change)
    await factors.remove(ann, 'a', change)
    expect(await factors.recoveryCodes(ann)).toBe(0)
  })
})
