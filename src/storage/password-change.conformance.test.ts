import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { passwordChangeStoreConformance } from '#storage/conformance/password-change-store.ts'
import { openStorage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'

onEachDatabase('password changes', (freshUrl) => {
  passwordChangeStoreConformance(async () => {
    const url = await freshUrl()
    const open = async () => {
      const storage = openStorage({ url, clock: systemClock, log: silentLogger })
      onTestFinished(() => storage.close())
      await storage.ready()
      return storage
    }
    return [await open(), await open()]
  })
})
