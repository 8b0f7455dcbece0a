import { Databases } from '#database/databases.ts'
import { UserDirectoryStore } from '#directory/store/user-directory-store.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { plannedReads, planOf } from '#testing/databases/directory-plans.ts'
import { recordedQueries } from '#testing/databases/recorded-queries.ts'
import { number, say } from './table.ts'

/** The plan of each read of a directory of `bulkPeople`, as the database executes it. */
export async function printPlans(url: string, users: number, since: number, database: string): Promise<void> {
  const { client, release } = new Databases({ clock: systemClock, log: silentLogger }).use(url)
  try {
    const { client: recorded, queries } = recordedQueries(client)
    const people = new UserDirectoryStore(recorded, 'people', systemClock, async () => {})
    const id = (await people.lookupUserByLogin('user0000007'))?.id ?? ''
    const groupId = (await people.lookupGroupByName('group0000007'))?.id ?? ''
    say(`\nplans of ${database} with ${number(users)} users`)
    for (const { name, indexes, read } of plannedReads(id, groupId, since + users)) {
      queries.length = 0
      await read(people)
      const plans: string[] = []
      for (const query of queries) plans.push((await planOf(client, query)).join('\n'))
      // The others count, or read the page before.
      say(`\n${name}\n${plans.findLast((plan) => plan.includes(indexes[0] ?? '')) ?? plans.at(-1)}`)
    }
    say('')
  } finally {
    await release()
  }
}
