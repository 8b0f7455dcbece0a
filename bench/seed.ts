import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#storage/open.ts'

const underWay = 256
const groups = 1000

export const loginOf = (n: number): string => `user${String(n).padStart(7, '0')}`

/** Fills the quickstart's directory with users, each in two of a thousand groups. */
export async function seedPeople(dataFolder: string, count: number): Promise<void> {
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger })
  await storage.ready()
  const people = storage.userDirectory({ name: 'people' })
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const n = next++
      const login = loginOf(n)
      await people.create({
        userID: login,
        groups: [`group${n % groups}`, `group${(n * 7 + 1) % groups}`],
        attributes: Attributes.from({
          userName: [login],
          mail: [`${login}@example.com`],
          givenName: [`Given${n % 5000}`],
          sn: [`Family${n % 20_000}`],
          displayName: [`Given${n % 5000} Family${n % 20_000}`],
          active: ['true'],
        }),
      })
    }
  }
  await Promise.all(Array.from({ length: underWay }, worker))
  await people.close()
  await storage.close()
}
