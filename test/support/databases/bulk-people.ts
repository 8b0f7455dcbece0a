import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'

/** The part of a directory that one list of statements fills. */
export interface BulkPeople {
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly memberships: readonly string[]
}

/** How many groups each user is in. */
export const groupsOfUser = 2

/** Creates the tables of an empty database, and the empty directory that `bulkPeople` fills. */
export async function createDirectory(place: { readonly url?: string; readonly dataFolder?: string }, name: string) {
  const storage = openStorage({ ...place, clock: systemClock, log: silentLogger })
  await storage.ready()
  const people = storage.userDirectory({ name })
  await people.searchUsers({ offset: 0, limit: 1 })
  await people.close()
  await storage.close()
}

/**
 * Statements for both databases that fill an empty directory with the rows that the program would write, in the order in
 * which it would write them, only faster: `user0000000` and so on, with the attributes of the SCIM gateway's built-in
 * mapping, each in two of the groups `group0000000` and so on.
 */
export function bulkPeople(directory: string, users: number, groups: number, now: number): BulkPeople {
  const series = (count: number): string =>
    `with recursive series(i) as (select 0 union all select i + 1 from series where i + 1 < ${count})`
  const padded = 'substr(cast(10000000 + i as text), 2)'
  const collection = (kind: string): string =>
    `(select pk from collections where directory = '${directory}' and kind = '${kind}')`
  const entries = (kind: string, prefix: string, count: number, attributes: string): string[] => [
    `${series(count)} insert into entries (collection, id, name, key, version, created, modified, attributes)
      select ${collection(kind)}, '${prefix[0]}' || ${padded} || '-0000-7000-8000-000000000000', '${prefix}' || ${padded},
        '${prefix}' || ${padded}, 1, ${now} + i, ${now} + i, ${attributes} from series`,
    `insert into collection_sizes (collection, slot, size) values (${collection(kind)}, 0, ${count})`,
  ]
  const given = `'Given' || cast(i % 5000 as text)`
  const family = `'Family' || cast(i % 20000 as text)`
  const mail = `'user' || ${padded} || '@example.com'`
  const values: Readonly<Record<string, string>> = {
    userName: `'user' || ${padded}`,
    'name.givenName': given,
    'name.familyName': family,
    displayName: `${given} || ' ' || ${family}`,
    emails: `'{"value":"' || ${mail} || '","type":"work","primary":true}'`,
    'emails.value': mail,
    active: `'true'`,
  }
  const names = Object.keys(values)
  const stored = names
    .map((name) => `'["${name}",["' || replace(${values[name]}, '"', '\\"') || '"]]'`)
    .join(` || ',' || `)
  const value = `case k ${names.map((name, k) => `when ${k} then ${values[name]}`).join(' ')} end`
  const member = (group: string): string =>
    `select g.pk as group_entry, u.pk as user_entry from numbered as u
      join entries as g on g.collection = ${collection('groups')} and g.key = 'group' || substr(cast(10000000 + ${group} as text), 2)`
  const numbered = `with numbered as (
    select pk, collection, cast(substr(name, 5) as integer) as i from entries where collection = ${collection('users')})`
  return {
    users: [
      ...entries('users', 'user', users, `'[' || ${stored} || ']'`),
      `${numbered}, names(k, name) as (values ${names.map((name, k) => `(${k}, '${name}')`).join(', ')})
        insert into attributes (entry, name_key, position, collection, name, value, value_key)
        select entry, lower(name), 0, collection, name, value, lower(value)
        from (select pk as entry, collection, k, name, ${value} as value from numbered cross join names) as given
        order by entry, k`,
    ],
    groups: entries('groups', 'group', groups, `'[]'`),
    memberships: [
      `${numbered} insert into memberships (group_entry, user_entry)
        select distinct group_entry, user_entry
        from (${member(`i % ${groups}`)} union all ${member(`(i * 7 + 1) % ${groups}`)}) as given order by user_entry`,
    ],
  }
}
