import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type CommitConnection, type CommitEnd, SharedCommits } from './shared-commits.ts'

/** Records what happens to it. A written row represents a unit's work. */
function fakeConnection() {
  const log: string[] = []
  const fake = { log, inTransaction: false, busy: 0, failCommit: false }
  const connection: CommitConnection = {
    begin: () => {
      if (fake.busy-- > 0) return false
      fake.inTransaction = true
      log.push('begin')
      return true
    },
    savepoint: () => log.push('savepoint'),
    release: () => log.push('release'),
    rollbackToSavepoint: () => log.push('undo'),
    commit: () => {
      if (fake.failCommit) throw new Error('disk full')
      fake.inTransaction = false
      log.push('commit')
    },
    rollback: () => {
      fake.inTransaction = false
      log.push('rollback')
    },
    get inTransaction() {
      return fake.inTransaction
    },
  }
  return { fake, connection, log }
}

/** Units join a commit however slow the machine is. */
const patient = { joinMillis: 60_000 }

test('units that are added at the same time share a commit and settle after it', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection, patient)
  const units = ['a', 'b', 'c'].map((name) =>
    commits.add(async () => log.push(name)).then(() => log.push(`reported ${name}`)),
  )
  await Promise.all(units)
  expect(log).toEqual(['begin', 'a', 'b', 'c', 'commit', 'reported a', 'reported b', 'reported c'])
})

test('a failing unit is undone alone: all run again with savepoints, and the later ones only so', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection, patient)
  const unit = (name: string, fails = false) =>
    commits.add(async () => {
      log.push(name)
      if (fails) throw new Error('mine')
    })
  const results = await Promise.allSettled([unit('a'), unit('b', true), unit('c')])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  const guarded = (...work: string[]): string[] => ['savepoint', ...work, 'release']
  const again = [guarded('a'), guarded('b', 'undo'), guarded('c'), guarded()].flat()
  expect(log).toEqual(['begin', 'a', 'b', 'rollback', 'begin', ...again, 'commit'])
})

test('what units leave to the end of their commit is written once', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection, patient)
  const write = async (items: readonly unknown[]): Promise<void> => void log.push(`write ${items.join()}`)
  await Promise.all([1, 2].map((item) => commits.add(async (end) => end?.leave('key', item, write))))
  expect(log).toEqual(['begin', 'write 1,2', 'commit'])
})

test('if the end of a commit fails, its units run again and leave nothing to it', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection, patient)
  const write = (): Promise<void> => Promise.reject(new Error('one of them'))
  const unit = async (item: number, end: CommitEnd | undefined): Promise<void> => {
    if (end !== undefined) end.leave('key', item, write)
    else if (item === 2) throw new Error('mine')
    else log.push(`write ${item}`)
  }
  const results = await Promise.allSettled([1, 2, 3].map((item) => commits.add((end) => unit(item, end))))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(log.filter((line) => !/savepoint|release/.test(line))).toEqual([
    ...['begin', 'rollback', 'begin'],
    ...['write 1', 'undo', 'write 3', 'commit'],
  ])
})

test('a unit that fails first does not run again, and the next commit has no savepoints', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection, patient)
  const first = commits.add(async () => {
    log.push('first')
    throw new Error('mine')
  })
  await Promise.all([expect(first).rejects.toThrow('mine'), commits.add(async () => log.push('second'))])
  expect(log.filter((line) => line === 'first' || line === 'second')).toEqual(['first', 'second'])
  log.length = 0
  await commits.add(async () => log.push('a'))
  expect(log).toEqual(['begin', 'a', 'commit'])
})

test('a failing commit rejects its units, and the next one can succeed', async () => {
  const { fake, connection } = fakeConnection()
  const commits = new SharedCommits(connection)
  fake.failCommit = true
  const results = await Promise.allSettled([commits.add(async () => 1), commits.add(async () => 2)])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  fake.failCommit = false
  expect(await commits.add(async () => 3)).toBe(3)
})

test('an error that ends the whole transaction rejects all units of it', async () => {
  const { fake, connection } = fakeConnection()
  const commits = new SharedCommits(connection, patient)
  const first = commits.add(async () => 1)
  const second = commits.add(async () => {
    fake.inTransaction = false
    throw new Error('disk full')
  })
  const third = commits.add(async () => 3)
  expect((await Promise.allSettled([first, second, third])).map(({ status }) => status)).toEqual([
    'rejected',
    'rejected',
    'fulfilled',
  ])
})

test('a commit has a maximum number of units; the others get the next one', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection, { ...patient, units: 2 })
  await Promise.all(Array.from({ length: 5 }, () => commits.add(async () => undefined)))
  expect(log.filter((line) => line === 'commit')).toHaveLength(3)
})

test('the wait for a lock of another process is limited', async () => {
  const { fake, connection } = fakeConnection()
  const commits = new SharedCommits(connection, { lockMillis: 60 })
  fake.busy = 2
  expect(await commits.add(async () => 1)).toBe(1)
  fake.busy = 1_000_000
  const late = [commits.add(async () => 2), commits.add(async () => 3)]
  for (const each of late) await expect(each).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})

test('a unit that takes too long is rejected without running again, and the others are not', async () => {
  const { connection } = fakeConnection()
  const commits = new SharedCommits(connection, { unitMillis: 20, joinMillis: 1000 })
  let started = 0
  const before = commits.add(async () => {
    for (let turn = 0; turn < 50; turn++) await undefined
    return 'before'
  })
  const stuck = commits.add(() => {
    started++
    return new Promise(() => {})
  })
  const after = commits.add(async () => 'after')
  await expect(stuck).rejects.toMatchObject({ code: 'INTERNAL' })
  expect([await before, await after, started]).toEqual(['before', 'after', 1])
})

test('idle waits for all units', async () => {
  const { connection, log } = fakeConnection()
  const commits = new SharedCommits(connection)
  const unit = commits.add(async () => {
    await nextTurn()
    log.push('done')
  })
  await commits.idle()
  expect(log.at(-1)).toBe('commit')
  await unit
})
