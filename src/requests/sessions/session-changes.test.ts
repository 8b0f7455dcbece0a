import { expect, test } from 'vitest'
import { entryIdentity, type Identity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { SessionChanges } from './session-changes.ts'

const [alice, bob] = [entryIdentity('people', 'a'), entryIdentity('people', 'b')]

function open() {
  const stored = new Map<Identity, string>()
  const asked: (readonly Identity[])[] = []
  let failure: Error | undefined
  const store = {
    fingerprints: async (owners: readonly Identity[]) => {
      asked.push(owners)
      if (failure !== undefined) throw failure
      return stored
    },
  }
  const changes = new SessionChanges({ store, clock: systemClock, log: silentLogger, everyMillis: 1 })
  const heard: string[] = []
  const listen = (user: Identity, name: string) =>
    changes.listen(user, { changed: () => heard.push(name), ended: () => heard.push(`${name} ended`) })
  const fail = (error: Error | undefined): void => {
    failure = error
  }
  return { stored, asked, changes, heard, listen, fail }
}

test('a listener hears once at the start, then of changes of its user, also after a failure', async () => {
  const { stored, asked, changes, heard, listen, fail } = open()
  listen(alice, 'one')
  listen(alice, 'two')
  listen(bob, 'other')
  await expect.poll(() => heard).toEqual(['one', 'two', 'other'])
  expect(asked[0]).toEqual([alice, bob])
  stored.set(alice, '1')
  await expect.poll(() => heard.slice(3)).toEqual(['one', 'two'])
  fail(new Error('down'))
  stored.set(bob, '1')
  const before = asked.length
  await expect.poll(() => asked.length).toBeGreaterThan(before + 1)
  fail(undefined)
  await expect.poll(() => heard.slice(5)).toEqual(['other'])
  await changes.close()
  expect(heard.slice(6)).toEqual(['one ended', 'two ended', 'other ended'])
})

test('nothing is looked at while no one listens', async () => {
  const { asked, changes, heard, listen } = open()
  const end = listen(alice, 'one')
  await expect.poll(() => heard).toEqual(['one'])
  end()
  // One look may be under way, and ends before a whole pause is over.
  const settled = async (): Promise<boolean> => {
    const before = asked.length
    await new Promise((done) => setTimeout(done, 50))
    return asked.length === before
  }
  await expect.poll(settled).toBe(true)
  listen(alice, 'again')
  await expect.poll(() => heard).toEqual(['one', 'again'])
  await changes.close()
})
