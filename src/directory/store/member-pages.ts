import type { DatabaseReader } from '#database/sql-client.ts'
import { statement } from '#database/statement.ts'
import { foldKey } from '#database/text-keys.ts'
import type { GroupReadOptions } from '#identity/account-store.ts'
import type { MembersPage } from '#identity/group.ts'
import { firstValue, membersPerPage } from './entries.ts'
import { keyList, listedKeys } from './search.ts'

/** The users with these keys in the order of creation, one statement per page. Users that no longer exist are left out. */
export async function* memberPages(
  reader: DatabaseReader,
  keys: readonly number[],
  display: GroupReadOptions['display'],
): AsyncGenerator<MembersPage> {
  const sorted = keys.toSorted((a, b) => a - b)
  const userDisplay = foldKey(display?.users ?? '')
  for (let start = 0; start < sorted.length; start += membersPerPage) {
    const some = keyList[reader.dialect](sorted.slice(start, start + membersPerPage))
    const rows = await findMembers.all(reader, { keys: some, userDisplay })
    yield {
      members: rows.map(({ name }) => name),
      memberIds: rows.map(({ id }) => id),
      memberDisplays: display === undefined ? undefined : rows.map(({ shown }) => shown ?? undefined),
    }
  }
}

const findMembers = statement<{ keys: string; userDisplay: string }, MemberRow>(
  ({ name }) => `with page as (${listedKeys[name]})
    select r.name, r.id, ${firstValue(':userDisplay')} as shown
    from page cross join entries r where r.pk = page.pk order by r.pk`,
)

interface MemberRow {
  readonly name: string
  readonly id: string
  readonly shown: string | null
}
