import { SecondFactorStore } from '#features/account/second-factors/second-factor-store.ts'
import { SecondFactors } from '#features/account/second-factors/second-factors.ts'
import { systemClock } from '#kernel/clock.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'

/** Second factors on a database in memory. */
export const memorySecondFactors = (database = memoryDatabase()): SecondFactors =>
  new SecondFactors({
    store: new SecondFactorStore(database),
    secrets: fakeSecretBox('second factor'),
    clock: systemClock,
  })
