import { SecondFactors } from '#engine/second-factors.ts'
import { systemClock } from '#kernel/clock.ts'
import { SecondFactorStore } from '#storage/second-factor-store.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'

/** Second factors on a database in memory, with the engine's interface for modules. */
export const memorySecondFactors = (database = memoryDatabase()): SecondFactors =>
  new SecondFactors({
    store: new SecondFactorStore(database),
    secrets: fakeSecretBox('second factor'),
    clock: systemClock,
  })
