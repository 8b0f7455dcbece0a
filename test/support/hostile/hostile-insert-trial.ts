import { expect } from 'vitest'
import type { DirectoryPage, DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { DirectoryInsert, PeopleInsert } from '#sdk/directory/directory-insert.ts'
import { accepted, fails, nobody, same } from '#testing/hostile/hostile-checks.ts'
import { expectInsertCovered, type InsertRowName, insertCoverage } from '#testing/hostile/hostile-coverage.ts'
import { unstorable } from '#testing/hostile/hostile-entry.ts'
import { combined, equal, substring } from '#testing/hostile/hostile-filters.ts'
import type { InsertOperation } from '#testing/hostile/hostile-operations.ts'
import { harmless, hostileValues } from '#testing/hostile/hostile-values.ts'
import { OperationCount } from '#testing/hostile/operation-count.ts'
import { hostileSeed, withSeed } from '#testing/hostile/sample.ts'

export interface InsertTrialOptions {
  readonly insert: DirectoryInsert | PeopleInsert
  readonly suffix: Dn
  readonly person: (login: string) => Dn
  readonly group: (name: string) => Dn
  /** An attribute with several values. */
  readonly attribute: string
  /** Writes to the system behind, which the insert itself cannot. */
  addGroup(name: string): Promise<unknown>
  removeGroup(name: string): Promise<unknown>
  addPerson(login: string, values: readonly string[], group: string): Promise<unknown>
  removePerson(login: string): Promise<unknown>
  readonly setPassword?: (login: string, password: string) => Promise<unknown>
  readonly width?: number
}

interface Entry {
  readonly values: readonly string[]
  readonly value: string
  login: string
  group: string
  held: readonly string[]
}

const batch = 100
/** A filter may have few clauses about memberships. */
const pack = 10
const pageSize = 45
const anything: Filter = { kind: 'present', attribute: 'objectClass' }

/** Puts each value through every operation of the insert, as many as its row of the table has. */
export const hostileInsertTrial = (row: InsertRowName, options: InsertTrialOptions): Promise<void> =>
  withSeed(() => trial(row, options))

async function trial(row: InsertRowName, options: InsertTrialOptions): Promise<void> {
  const { insert, suffix, person, group, attribute, width = 8 } = options
  const { values: total, perName, passwords, positions } = insertCoverage[row].bounds
  const counter = new OperationCount<InsertOperation>()
  const did: typeof counter.did = counter.did.bind(counter)
  const keepsPeople = 'addPerson' in insert ? insert : undefined
  const each = (entries: readonly Entry[], work: (entry: Entry, i: number) => Promise<void>) =>
    inParallel(entries, width, work)

  /** Called while there are few entries, as some inserts read all of them to reject an unknown position. */
  async function areNoPositions(entries: readonly Entry[]): Promise<void> {
    await each(entries, async ({ value }) => {
      if (counter.count('position') < positions) {
        const from = { base: suffix, scope: 'sub', filter: anything, limit: 2, after: value } as const
        await did('position', () => fails(() => insert.search(from), ['BAD_REQUEST']))
      }
      if (keepsPeople !== undefined && counter.count('position in list') < positions) {
        await did('position in list', () => fails(() => keepsPeople.listPeople(2, value), ['BAD_REQUEST']))
      }
    })
  }

  async function come(entries: readonly Entry[]): Promise<void> {
    const add = async (entry: Entry): Promise<void> => {
      const adding = () => options.addPerson(entry.login, entry.held, entry.group)
      const may = entry.values.some((value) => unstorable('login', value))
      if (!(await refused(adding, may))) return
      if (unstorable('login', entry.value)) entry.login = harmless(entry.value)
      entry.held = entry.held.map((value) => (unstorable('value', value) ? harmless(value) : value))
      await adding()
    }
    await each(entries, async (entry) => {
      if (unstorable('group', entry.value)) entry.group = harmless(entry.value)
      await options.addGroup(entry.group)
      await (keepsPeople === undefined ? add(entry) : did('add person', () => add(entry), entry.values.length))
    })
  }

  async function areRead(entries: readonly Entry[]): Promise<void> {
    await each(entries, async (entry, i) => {
      const { login, value } = entry
      const [dn, crew] = [person(login), group(entry.group)]
      const readPerson = async () => {
        const [found, ...more] = await read(dn)
        same([found?.attributes.first('uid'), more.length], [login, 0])
        same([...(found?.attributes.values(attribute) ?? [])].sort(), [...entry.held].sort())
        same(found?.dn.key, dn.key)
        if (login !== value) await nothing(() => read(person(value)))
      }
      await did('read person', readPerson, entry.values.length)
      await did('read group', async () => {
        const [found] = await read(crew)
        same(found?.attributes.first('cn'), entry.group)
        if (entry.group !== value) await nothing(() => read(group(value)))
      })
      const next = entries[(i + 1) % entries.length] ?? entry
      await did('is member', async () => {
        same(await insert.isMember(crew, dn), true)
        same(await insert.isMember(crew, person(next.login)), false)
        same(await insert.isMember(group(next.group), dn), false)
      })
      await did('members', async () => {
        const found = await insert.members(crew, 5)
        same(
          found.filter((one) => one.isWithin(suffix)).map(({ key }) => key),
          [dn.key],
        )
      })
      await password(entry, next)
    })
  }

  /** If it is accepted, it is the password of this entry and no other; if not, of none. */
  async function password({ login, value }: Entry, next: Entry): Promise<void> {
    const { bind } = insert
    if (bind === undefined || counter.count('check password') >= passwords) return
    const set = () => refused(async () => options.setPassword?.(login, value), true)
    const check = async (isTaken: boolean) => {
      same(await bind.call(insert, person(login), value), isTaken)
      same(await bind.call(insert, person(next.login), value), false)
    }
    const isTaken = !(await (keepsPeople === undefined ? set() : did('set password', set)))
    await did('check password', () => check(isTaken))
    if (insert.setEntryPassword === undefined) return
    await did('set entry password', async () => {
      const isRefused = await refused(async () => insert.setEntryPassword?.(person(login), value, undefined), true)
      same(isRefused, !isTaken)
      await check(isTaken)
      const other = insert.setEntryPassword?.(person(login), value, 'the id of another entry')
      same(await other?.catch((error: unknown) => (error instanceof GatewayError ? error.code : error)), 'NOT_FOUND')
    })
  }

  async function areSearched(entries: readonly Entry[]): Promise<void> {
    const packs = Array.from({ length: Math.ceil(entries.length / pack) }, (_, i) =>
      entries.slice(i * pack, (i + 1) * pack),
    )
    const turns = packs.flatMap((some) => Array.from({ length: perName }, (_, k) => ({ some, k })))
    const textOf = (entry: Entry, k: number): string => entry.held[k] ?? ''
    const filters: readonly [InsertOperation, (entry: Entry, i: number, k: number) => Filter][] = [
      ['equal', (entry, i, k) => equal(attribute, textOf(entry, k), i)],
      ['substring', (entry, i, k) => substring(attribute, textOf(entry, k), i)],
      [
        'and/or/not',
        (entry, i, k) =>
          combined(
            equal('uid', entry.login, 1),
            equal(attribute, textOf(entry, k), i),
            attribute,
            harmless(entry.value),
          ),
      ],
    ]
    const search = async (operation: InsertOperation, some: readonly Entry[], leaves: readonly Filter[]) => {
      const filter: Filter = { kind: 'or', filters: leaves }
      const query = { base: suffix, scope: 'sub', filter, limit: some.length + 5 } as const
      const { entries: found } = await did(operation, () => insert.search(query), some.length)
      same(found.map(({ attributes }) => attributes.first('uid')).sort(), some.map(({ login }) => login).sort())
    }
    for (const [operation, filterOf] of filters) {
      await inParallel(turns, width, ({ some, k }) =>
        search(
          operation,
          some,
          some.map((entry, i) => filterOf(entry, i, k)),
        ),
      )
    }
    await inParallel(packs, width, (some) =>
      search(
        'by membership',
        some,
        some.map((entry) => equal('memberOf', group(entry.group).toString(), 1)),
      ),
    )
    await each(entries, async (entry) => {
      for (const [k, value] of entry.values.entries()) {
        if (entry.held[k] === value) continue
        const filter = equal(attribute, value, 1)
        await nothing(async () => (await insert.search({ base: suffix, scope: 'sub', filter, limit: 2 })).entries)
      }
    })
  }

  async function arePaged(entries: readonly Entry[], before: readonly PlainEntry[]): Promise<void> {
    const inAttributes = entries.reduce((sum, { values }) => sum + values.length, 0)
    const found = new Map((await did('page', everything, inAttributes)).map((entry) => [entry.key, entry]))
    for (const entry of entries) {
      const { key } = person(entry.login)
      same([...(found.get(key)?.attributes[attribute] ?? [])].sort(), [...entry.held].sort())
      found.delete(key)
      found.delete(group(entry.group).key)
    }
    expect([...found.values()]).toEqual(before)
    if (keepsPeople === undefined) return
    const { people } = await did('list people', () => keepsPeople.listPeople(1000), inAttributes)
    const listed = new Set(people.map(({ login }) => login))
    for (const { login } of entries) same(listed.has(login), true)
  }

  async function go(entries: readonly Entry[]): Promise<void> {
    await each(entries, async ({ login, group: name }) => {
      const remove = () => options.removePerson(login)
      await (keepsPeople === undefined ? remove() : did('remove person', remove))
      await options.removeGroup(name)
    })
  }

  async function read(base: Dn): Promise<readonly InsertEntry[]> {
    return (await insert.search({ base, scope: 'base', filter: anything, limit: 5 })).entries
  }

  async function everything(): Promise<PlainEntry[]> {
    const found: InsertEntry[] = []
    let page: DirectoryPage<InsertEntry> | undefined
    do {
      const search: DirectoryPageSearch = { base: suffix, scope: 'sub', filter: anything, limit: pageSize }
      page = await insert.search(page?.next === undefined ? search : { ...search, after: page.next })
      found.push(...page.entries)
    } while (page.next !== undefined)
    expect(new Set(found.map(({ dn }) => dn.key)).size).toBe(found.length)
    return found.map(({ dn, attributes }) => ({ key: dn.key, attributes: { ...attributes.toObject() } }))
  }

  for (const name of ['bystander', '*', 'O"Brien\\']) {
    await options.addGroup(name)
    await options.addPerson(name, [name, 'many'], name)
  }
  const before = await everything()
  expect(before.length).toBeGreaterThanOrEqual(6)
  const values = hostileValues(total, hostileSeed)
  for (let start = 0; start < values.length; start += batch * perName) {
    const size = Math.min(batch, Math.ceil((values.length - start) / perName))
    const entries = Array.from({ length: size }, (_, i) =>
      entryOf(values.slice(start + i * perName, start + (i + 1) * perName)),
    )
    await areNoPositions(entries)
    await come(entries)
    await areRead(entries)
    await areSearched(entries)
    await arePaged(entries, before)
    await go(entries)
    expect(await everything()).toEqual(before)
  }
  expectInsertCovered(row, insert, counter.tally())
}

interface PlainEntry {
  readonly key: string
  readonly attributes: Readonly<Record<string, readonly string[]>>
}

const entryOf = (values: readonly string[]): Entry => {
  const [value = ''] = values
  return { values, value, login: value, group: value, held: values }
}

/** Whether it was rejected, for an allowed reason. */
const refused = async (work: () => Promise<unknown>, may: boolean): Promise<boolean> => !(await accepted(work, may))

const nothing = (look: () => Promise<readonly unknown[]>): Promise<void> => nobody(async () => (await look())[0])
