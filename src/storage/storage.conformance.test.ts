import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { eventStoreConformance } from '#testing/storage/event-store.ts'

async function storageAt(url: string): Promise<Storage> {
  const storage = openStorage({ url, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  return storage
}

onEachDatabase('events', (freshUrl) => {
  eventStoreConformance(async () => {
    const url = await freshUrl()
    return [(await storageAt(url)).events, (await storageAt(url)).events]
  })
})
