import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'

/** When the first of them was created; each of the others follows a millisecond later. */
export const peopleSince = Date.UTC(2026, 0, 31, 8)

export const personName = (n: number): string => `user${number(n)}`
export const personId = (n: number): string => `0${number(n)}-0000-7000-8000-000000000000`

const number = (n: number): string => String(10_000_000 + n).slice(1)

/**
 * Fills the directory `people` of an empty database with users of the SCIM gateway's built-in mapping, in a few
 * statements. Every tenth has an email of the type `home`, the others of the type `work`.
 */
export async function insertPeople(place: { readonly url?: string; readonly dataFolder: string }, count: number) {
  const storage = openStorage({ ...place, clock: systemClock, log: silentLogger })
  await storage.ready()
  const people = storage.userDirectory({ name: 'people' })
  await people.searchUsers({ offset: 0, limit: 1 })
  await people.close()
  await storage.close()
  if (place.url?.startsWith('postgres') === true) {
    const client = new pg.Client({ connectionString: place.url })
    await client.connect()
    for (const statement of statements(count)) await client.query(statement)
    await client.end()
    return
  }
  const database = new DatabaseSync(join(place.dataFolder, 'gatehouse.db'))
  database.exec(`begin; ${statements(count).join(';')}; commit`)
  database.close()
}

function statements(count: number): string[] {
  const series = `with recursive series(i) as (select 0 union all select i + 1 from series where i + 1 < ${count}),
    people as (
      select i, 'user' || n as login, '0' || n || '-0000-7000-8000-000000000000' as id,
        '{"value":"user' || n || '@x.org","type":"' || case when i % 10 = 0 then 'home' else 'work' end || '","primary":true}' as email
      from (select i, substr(cast(10000000 + i as text), 2) as n from series) as numbered
    )`
  const collection = "(select pk from collections where directory = 'people' and kind = 'users')"
  const held = `'[["active",["true"]],["emails",["' || replace(email, '"', '\\"') || '"]],["emails.value",["' || login || '@x.org"]]]'`
  const attribute = (name: string, value: string): string => `${series}
    insert into attributes (entry, name_key, position, collection, name, value, value_key)
    select e.pk, '${name}', 0, e.collection, '${name}', ${value}, ${value}
    from people join entries as e on e.id = people.id`
  return [
    `${series} insert into entries (collection, id, name, key, version, created, modified, attributes)
      select ${collection}, id, login, login, 1, ${peopleSince} + i, ${peopleSince} + i, ${held} from people`,
    attribute('active', "'true'"),
    attribute('emails', 'people.email'),
    attribute('emails.value', "people.login || '@x.org'"),
    `insert into collection_sizes (collection, slot, size) values (${collection}, 0, ${count})
      on conflict (collection, slot) do update set size = ${count}`,
  ]
}
