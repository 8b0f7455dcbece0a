import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { issuerStoreConformance } from '#storage/conformance/issuer-store.ts'
import { openStorage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'

onEachDatabase('own issuers', (freshUrl) => {
  issuerStoreConformance(async () => {
    const url = await freshUrl()
    const open = async () => {
      const storage = openStorage({ url, clock: systemClock, log: silentLogger })
      onTestFinished(() => storage.close())
      await storage.ready()
      return storage.issuer
    }
    return [await open(), await open()]
  })
})
