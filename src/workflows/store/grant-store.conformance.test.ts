import { describe, expect, test } from 'vitest'
import type { NewGrant } from '#sdk/workflow/grant.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { commitOf, minute, newRun, noLease, outcomes } from '#testing/databases/workflow-stores.ts'
import { findOfRuns } from './grant-store.ts'

const grant = (id: string, more: Partial<NewGrant> = {}): NewGrant => ({
  id,
  target: 'people',
  subject: 'Bob',
  kind: 'group',
  name: 'admins',
  expires: { inMillis: noLease },
  ...more,
})

const ids = (grants: readonly { readonly id: string }[]): string[] => grants.map(({ id }) => id)

onEachDatabase('grants', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('returns a grant as it was added, and as due after its expiry', async () => {
    const { one, two } = await open()
    const ends = new Date(Date.now() + minute)
    await one.grants.add([grant('a', { run: 'r' }), grant('b', { name: 'users', expires: { at: ends } })])
    expect(await two.grants.get('b')).toMatchObject({
      ...grant('b', { name: 'users' }),
      state: 'active',
      expires: ends,
    })
    expect(ids(await two.grants.due(10))).toEqual(['a'])
    expect(ids(await two.grants.ofSubject('bob'))).toEqual(['a', 'b'])
    expect(await two.grants.ofSubject('\0')).toEqual([])
    expect(await two.grants.get('x')).toBeUndefined()
  })

  test('keeps one grant of the same access, until the later expiry', async () => {
    const { one, two } = await open()
    await one.grants.add([grant('a')])
    const ends = new Date(Date.now() + 5 * minute)
    await two.grants.add([grant('b', { subject: 'BOB', expires: { at: ends } }), grant('c')])
    expect(ids(await one.grants.ofSubject('bob'))).toEqual(['a'])
    expect((await one.grants.get('a'))?.expires).toEqual(ends)
    await Promise.all([one, two, one].map(({ grants }, i) => grants.add([grant(`${i}`, { name: 'many' })])))
    expect(await one.grants.ofSubject('bob')).toHaveLength(2)
  })

  test('extends a grant and never shortens it', async () => {
    const { one } = await open()
    const later = new Date(Date.now() + 5 * minute)
    await one.grants.add([grant('a')])
    expect((await one.grants.extend('a', { at: later }, 'r'))?.expires).toEqual(later)
    expect((await one.grants.extend('a', { at: later }, 'r'))?.expires).toEqual(later)
    expect(await one.grants.extend('a', { inMillis: 0 }, 'r')).toBeUndefined()
    expect((await one.grants.get('a'))?.expires).toEqual(later)
    expect(await one.grants.due(10)).toEqual([])
    expect(await one.grants.extend('x', { at: later }, 'r')).toBeUndefined()
  })

  describe('what the access is now that a run granted', () => {
    const ahead = (minutes: number) => ({ at: new Date(Date.now() + minutes * minute) })

    test('a run that requested the access again, or extended it, shows the same end as the first', async () => {
      const { one, two } = await open()
      const [first, again, longest] = [ahead(5), ahead(7), ahead(9)]
      await one.grants.add([grant('a', { run: 'r1', expires: first })])
      await one.grants.add([grant('b', { run: 'r2', expires: again })])
      await one.grants.add([grant('c', { run: 'r3', expires: first })])
      expect((await one.grants.extend('a', longest, 'r4'))?.id).toBe('a')
      await one.grants.add([grant('d', { run: 'r1', expires: first }), grant('e', { run: 'r5', name: 'others' })])
      const now = await two.grants.ofRuns(['r1', 'r2', 'r3', 'r4', 'none', '\0'])
      const same = { state: 'active', expires: longest.at }
      expect(Object.fromEntries(now)).toEqual({ r1: same, r2: same, r3: same, r4: same })
      expect(await one.grants.ofRuns([])).toEqual(new Map())
    })

    test('several grants of a run are active until the first of them expires', async () => {
      const { one } = await open()
      const [first, later] = [ahead(5), ahead(7)]
      const all = [grant('a', { run: 'r', expires: later }), grant('b', { run: 'r', name: 'others', expires: first })]
      await one.grants.add(all)
      expect((await one.grants.ofRuns(['r'])).get('r')).toEqual({ state: 'active', expires: first.at })
      await one.grants.revoke({ grant: 'b', onlyDue: false })
      expect((await one.grants.ofRuns(['r'])).get('r')).toEqual({ state: 'active', expires: later.at })
    })

    test('access that ended is being removed, could not be removed, or is gone', async () => {
      const { one } = await open()
      const later = ahead(5)
      await one.grants.add([grant('a', { run: 'r1', expires: later }), grant('b', { run: 'r2', name: 'others' })])
      expect((await one.grants.ofRuns(['r2'])).get('r2')).toMatchObject({ state: 'removing' })
      for (const [id, onlyDue] of [['a', false] as const, ['b', true] as const]) {
        const effects = { revokes: [{ grant: id, onlyDue, removal: `remove-${id}` }] }
        await one.runs.start(newRun(`remove-${id}`), { effects })
      }
      const of = async (run: string) => (await one.grants.ofRuns([run])).get(run)
      const ended = expect.any(Date)
      expect(await of('r1')).toEqual({ state: 'removing', expires: later.at, ended, givenBack: true })
      const claimed = await one.runs.claim('w', 10, minute)
      const incident = { task: 't', code: 'TARGET_FAILED', message: 'm' }
      for (const run of claimed) {
        const next =
          run.head.id === 'remove-a' ? { state: 'completed' as const } : { state: 'incident' as const, incident }
        await one.runs.commit(commitOf(run, next))
      }
      expect(await of('r1')).toEqual({ state: 'ended', expires: later.at, ended, givenBack: true })
      expect(await of('r2')).toEqual({ state: 'notRemoved', expires: ended, ended })
      await one.grants.add([grant('c', { run: 'r3', expires: later })])
      expect(await of('r1')).toMatchObject({ state: 'ended' })
      expect(await of('r3')).toMatchObject({ state: 'active' })
    })

    test('is found by indexes, however many grants there are', async () => {
      const { sql, dialect } = await open()
      const numbers = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)'
      await sql(`insert into grants
          (id, target, subject, subject_key, kind, name, name_key, granted, expires, run, state)
        ${numbers} select 'g' || i, 't', 's' || i, 's' || i, 'group', 'n', 'n', 1, 2, 'r' || i, 'active' from n`)
      await sql(`insert into grant_runs (grant_id, run) ${numbers} select 'g' || i, 'later' || i from n`)
      for (const table of ['grants', 'grant_runs']) await sql(`analyze ${table}`)
      const query = findOfRuns.query(dialect, { runs: '["r1","later2"]' })
      const text = query.sql.replaceAll(/\?|\$\d+/g, `'["r1","later2"]'`)
      const plan = JSON.stringify(await sql(`${dialect === 'sqlite' ? 'explain query plan' : 'explain'} ${text}`))
      for (const index of ['grants_of_run', 'grant_runs_of_run']) expect(plan).toContain(index)
      expect(plan).not.toMatch(/SCAN (?:g|grants|grant_runs|removals)\b|Seq Scan on (?:grants|grant_runs)/)
    })
  })

  test('revokes a grant once, with the run that removes the access', async () => {
    const { one, two } = await open()
    await one.grants.add([grant('a')])
    const revokes = [{ grant: 'a', onlyDue: true }]
    const tries = Array.from({ length: 6 }, (_, i) =>
      (i % 2 === 0 ? one : two).runs.start(newRun(`revoke-${i}`), { effects: { revokes } }),
    )
    const { done, refused } = outcomes(await Promise.allSettled(tries))
    expect({ done, refused: [...new Set(refused)] }).toEqual({ done: 1, refused: ['CONFLICT'] })
    expect(await one.runs.claim('w', 10, minute)).toHaveLength(1)
    expect(await one.grants.get('a')).toMatchObject({ state: 'revoked' })
    expect(await one.grants.extend('a', { inMillis: minute }, 'r')).toBeUndefined()
    expect(await one.grants.revoke({ grant: 'a', onlyDue: false })).toBeUndefined()
    await one.grants.add([grant('again')])
    expect(ids(await one.grants.ofSubject('bob'))).toEqual(['again'])
  })

  test('revokes an extended grant only if it need not be due', async () => {
    const { one } = await open()
    await one.grants.add([grant('a')])
    await one.grants.extend('a', { inMillis: minute }, 'r')
    expect(await one.grants.revoke({ grant: 'a', onlyDue: true })).toBeUndefined()
    expect(await one.grants.revoke({ grant: 'a', onlyDue: false })).toMatchObject({ id: 'a', state: 'revoked' })
  })
})
