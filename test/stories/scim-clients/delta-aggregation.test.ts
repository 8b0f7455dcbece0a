import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertPeople, peopleSince, personId } from '#testing/databases/many-people.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { coreGroup, coreUser, type ScimClient, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { siegePeople } from '#testing/stories/siege.ts'

const count = siegePeople || 5_000
/** The first client reads everything; the second only the first pages, to save time. */
const firstPages = { '/scim/sailpoint': count / 200, '/scim/okta': 10 }
/** The clients change people of their own half, this far from each other. */
const step = count / 50 - 1

interface Resource {
  readonly id: string
  readonly meta: { readonly lastModified: string }
}

/** Follows a list to its end, or for this many pages; `between` runs before the second page. */
async function follow(
  client: ScimClient,
  query: Readonly<Record<string, string>>,
  {
    pages = 1000,
    between = async () => {},
  }: { readonly pages?: number; readonly between?: () => Promise<unknown> } = {},
): Promise<Resource[]> {
  const found: Resource[] = []
  let cursor: string | undefined = ''
  for (let page = 0; cursor !== undefined && page < pages; page++) {
    if (page === 1) await between()
    const { status, body } = await client.list('/Users', { ...query, cursor, attributes: 'userName,meta' })
    expect(status, JSON.stringify(body)).toBe(200)
    found.push(...body.Resources)
    cursor = body.nextCursor
  }
  return found
}

const ids = (resources: readonly Resource[]): string[] => resources.map(({ id }) => id).sort()

function story(name: string, databaseUrl?: () => Promise<string>): void {
  describe.skipIf(databaseUrl !== undefined && postgresUrl() === '')(
    `delta aggregation of ${count} users, ${name}`,
    () => {
      let server: ScimServer
      let dataFolder: string
      beforeAll(async () => {
        dataFolder = await mkdtemp(join(tmpdir(), 'gatehouse-delta-'))
        const url = await databaseUrl?.()
        await insertPeople({ dataFolder, ...(url === undefined ? {} : { url }) }, count)
        server = await startScimServer(url, dataFolder)
      }, 240_000)
      afterAll(async () => {
        await server?.process.stop()
        await rm(dataFolder, { recursive: true, force: true })
      })
      const rename = async (client: ScimClient, id: string) => {
        const value = fresh('name')
        const { status } = await client.patch(`/Users/${id}`, [{ op: 'replace', path: 'displayName', value }])
        expect(status).toBe(200)
      }

      for (const [path, pages] of Object.entries(firstPages)) {
        test(`${path}: a first read, then exactly the changes since, by cursor and by index`, {
          timeout: 120_000,
        }, async () => {
          const client = server.client(path)
          const base = path === '/scim/okta' ? count / 2 : 0
          const first = await follow(client, { count: '200' }, { pages })
          expect(new Set(ids(first)).size).toBe(200 * pages)

          const started = new Date().toISOString()
          const changed = Array.from({ length: 25 }, (_, i) => personId(base + i * step))
          for (const id of changed) await rename(client, id)
          const created = await client.post('/Users', { schemas: [coreUser], userName: fresh('new') })
          const wanted = [...changed, created.body.id].sort()
          const filter = `meta.lastModified gt "${started}"`

          expect(ids(await follow(client, { filter, count: '10' }))).toEqual(wanted)
          const numbered: Resource[] = []
          for (let startIndex = 1; startIndex <= 26; startIndex += 10) {
            const { body } = await client.list('/Users', { filter, startIndex: String(startIndex), count: '10' })
            expect(body.totalResults).toBe(26)
            numbered.push(...body.Resources)
          }
          expect(ids(numbered)).toEqual(wanted)

          // Changes while the client reads: one resource already read, one still to come, one that had not changed.
          const [late, again] = [personId(base + 7), changed[0] ?? '']
          const between = async () => {
            for (const id of [late, again, changed[20] ?? '']) await rename(client, id)
          }
          const read = await follow(client, { filter, count: '10' }, { between })
          expect([...new Set(ids(read))]).toEqual([...wanted, late].sort())
          const newest = new Map(read.map(({ id, meta }) => [id, meta.lastModified]))
          for (const id of [late, again]) {
            expect(newest.get(id)).toBe((await client.get(`/Users/${id}`)).body.meta.lastModified)
          }

          // A resource's own time: `gt` excludes it, `ge` includes it, for every offset.
          const own = newest.get(late) ?? ''
          const shifted = `${new Date(Date.parse(own) + 7_200_000).toISOString().slice(0, -1)}+02:00`
          for (const time of [own, shifted]) {
            expect(ids(await follow(client, { filter: `meta.lastModified gt "${time}"` }))).not.toContain(late)
            expect(ids(await follow(client, { filter: `meta.lastModified ge "${time}"` }))).toContain(late)
          }
        })
      }

      test('orders, and filters on times and on parts of lists, find all matches', {
        timeout: 120_000,
      }, async () => {
        const client = server.client('/scim/sailpoint')
        const list = async (query: Readonly<Record<string, string>>) => {
          const { status, body } = await client.list('/Users', { count: '3', ...query })
          expect(status, JSON.stringify(body)).toBe(200)
          return body
        }
        const oldest = await list({ sortBy: 'meta.created' })
        expect(oldest.Resources.map(({ id }: Resource) => id)).toEqual([0, 1, 2].map(personId))
        const until = new Date(peopleSince + 9).toISOString()
        expect((await list({ filter: `meta.created lt "${until}"` })).totalResults).toBe(9)
        expect((await list({ filter: 'emails.type eq "home"' })).totalResults).toBe(count / 10)
        expect((await list({ filter: `emails.type eq "HOME" and meta.created lt "${until}"` })).totalResults).toBe(1)
        expect((await list({ filter: 'emails[type eq "other"]' })).totalResults).toBe(0)
        const newest = await list({ sortBy: 'meta.lastModified', sortOrder: 'descending' })
        const times = newest.Resources.map(({ meta }: Resource) => meta.lastModified)
        expect(times).toEqual(times.toSorted().reverse())
      })

      test('groups whose members changed are found', { timeout: 60_000 }, async () => {
        const client = server.client('/scim/sailpoint')
        const group = async () =>
          (await client.post('/Groups', { schemas: [coreGroup], displayName: fresh('group') })).body.id as string
        const [changed] = [await group(), await group()]
        const started = new Date(Date.now() + 1).toISOString()
        await new Promise((done) => setTimeout(done, 5))
        const added = await client.patch(`/Groups/${changed}`, [
          { op: 'add', path: 'members', value: [{ value: personId(5) }] },
        ])
        expect([200, 204]).toContain(added.status)
        const { body } = await client.filter('/Groups', `meta.lastModified gt "${started}"`)
        expect(body.Resources.map(({ id }: Resource) => id)).toEqual([changed])
      })
    },
  )
}

story('on SQLite')
story('on PostgreSQL', freshSchema)
