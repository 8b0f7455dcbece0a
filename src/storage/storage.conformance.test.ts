import { onTestFinished } from 'vitest'
import type { UserDirectory } from '#identity/user-directory.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { auditStoreConformance } from '#storage/conformance/audit-store.ts'
import { eventStoreConformance } from '#storage/conformance/event-store.ts'
import { expectedGroupConformance } from '#storage/conformance/expected-group.ts'
import { filterConformance } from '#storage/conformance/filters.ts'
import { groupConformance } from '#storage/conformance/groups.ts'
import { journalStoreConformance } from '#storage/conformance/journal-store.ts'
import { loginFailureStoreConformance } from '#storage/conformance/login-failure-store.ts'
import { loginStoreConformance } from '#storage/conformance/login-store.ts'
import { nestedGroupConformance } from '#storage/conformance/nested-groups.ts'
import { pageConformance } from '#storage/conformance/pages.ts'
import { sessionStoreConformance } from '#storage/conformance/session-store.ts'
import { timeConformance } from '#storage/conformance/times.ts'
import { userDirectoryConformance } from '#storage/conformance/user-directory.ts'
import { versionConformance } from '#storage/conformance/versions.ts'
import { openStorage, type Storage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'

async function storageAt(url: string, clock: Clock = systemClock): Promise<Storage> {
  const storage = openStorage({ url, clock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  return storage
}

onEachDatabase('sessions', (freshUrl) => {
  sessionStoreConformance(async () => (await storageAt(await freshUrl())).sessions)
})

onEachDatabase('logins', (freshUrl) => {
  loginStoreConformance(async () => {
    const url = await freshUrl()
    return [(await storageAt(url)).logins, (await storageAt(url)).logins]
  })
  loginFailureStoreConformance(async () => {
    const url = await freshUrl()
    return [(await storageAt(url)).loginFailures, (await storageAt(url)).loginFailures]
  })
})

onEachDatabase('audit', (freshUrl) => {
  auditStoreConformance(async () => (await storageAt(await freshUrl())).audit)
})

onEachDatabase('journal', (freshUrl) => {
  journalStoreConformance(async () => (await storageAt(await freshUrl())).journal)
})

onEachDatabase('events', (freshUrl) => {
  eventStoreConformance(async () => {
    const url = await freshUrl()
    return [(await storageAt(url)).events, (await storageAt(url)).events]
  })
})

onEachDatabase('user directory', (freshUrl) => {
  const directories = async () => {
    const storage = await storageAt(await freshUrl())
    return (name: string) => {
      const directory = storage.userDirectory({ name })
      onTestFinished(() => directory.close())
      return directory
    }
  }
  userDirectoryConformance(directories)
  groupConformance(directories)
  filterConformance(directories)
  pageConformance(directories)
  timeConformance(async (clock) => {
    const directory = (await storageAt(await freshUrl(), clock)).userDirectory({ name: 'people' })
    onTestFinished(() => directory.close())
    return directory
  })
  const twoOfOne = async (): Promise<readonly [UserDirectory, UserDirectory]> => {
    const url = await freshUrl()
    const [first, second] = [await storageAt(url), await storageAt(url)].map((storage) => {
      const directory = storage.userDirectory({ name: 'people' })
      onTestFinished(() => directory.close())
      return directory
    })
    if (first === undefined || second === undefined) throw new Error('two were opened')
    return [first, second]
  }
  versionConformance(twoOfOne)
  expectedGroupConformance(twoOfOne)
  nestedGroupConformance(twoOfOne)
})
