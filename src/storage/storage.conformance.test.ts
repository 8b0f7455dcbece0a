import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { auditStoreConformance } from '#storage/conformance/audit-store.ts'
import { eventStoreConformance } from '#storage/conformance/event-store.ts'
import { journalStoreConformance } from '#storage/conformance/journal-store.ts'
import { loginFailureStoreConformance } from '#storage/conformance/login-failure-store.ts'
import { loginStoreConformance } from '#storage/conformance/login-store.ts'
import { sessionStoreConformance } from '#storage/conformance/session-store.ts'
import { openStorage, type Storage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'

async function storageAt(url: string): Promise<Storage> {
  const storage = openStorage({ url, clock: systemClock, log: silentLogger })
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
