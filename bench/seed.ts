import { Attributes } from '#identity/attributes.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { createGroup, createUser } from '#testing/databases/directory-writes.ts'

const underWay = 256
/** Groups that share the users. */
export const manyGroups = 1000
/** Groups with as many of the first users. */
export const sizedGroups = [10, 5000, 50_000] as const
export const groupOfSize = (size: number): string => `of${size}`
const emptyGroups = ['empty1', 'empty2', 'empty3']

export const loginOf = (n: number): string => `user${String(n).padStart(7, '0')}`

/** Fills the directory with users of the built-in mapping, each in two of a thousand groups. */
export async function seedPeople(dataFolder: string, count: number): Promise<void> {
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger })
  await storage.ready()
  const people = storage.userDirectory({ name: 'people' })
  for (const name of emptyGroups) await createGroup(people, name)
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await createPerson(people, next++)
  }
  await Promise.all(Array.from({ length: underWay }, worker))
  await people.close()
  await storage.close()
}

async function createPerson(people: UserDirectory, n: number): Promise<void> {
  const login = loginOf(n)
  const mail = `${login}@example.com`
  await createUser(people, {
    userID: login,
    groups: [
      `group${n % manyGroups}`,
      `group${(n * 7 + 1) % manyGroups}`,
      ...sizedGroups.filter((size) => n < size).map(groupOfSize),
    ],
    attributes: Attributes.from({
      userName: [login],
      'name.givenName': [`Given${n % 5000}`],
      'name.familyName': [`Family${n % 20_000}`],
      displayName: [`Given${n % 5000} Family${n % 20_000}`],
      emails: [JSON.stringify({ value: mail, type: 'work', primary: true })],
      'emails.value': [mail],
      active: ['true'],
    }),
  })
}
