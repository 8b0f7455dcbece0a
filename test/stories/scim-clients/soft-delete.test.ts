import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { coreUser, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { scimConfiguration } from '#testing/scim/scim-lookups.ts'
import { fresh } from '#testing/scim/scim-story.ts'

/** The example, with a delete workflow that deactivates. */
async function configuration(): Promise<string> {
  const people = readFileSync('examples/scim/people.yaml', 'utf8')
  const deactivating = people.replace(
    '    - taskType: delete\n      target: people\n',
    `    - taskType: addAttribute
      name: active
      value: ""
      remove: true
    - taskType: addAttribute
      name: active
      value: "false"
    - taskType: provision
      sync: true
      target: people
      attributes: [active]
`,
  )
  if (deactivating === people) throw new Error('examples/scim/people.yaml has changed')
  return scimConfiguration({ files: { 'people.yaml': deactivating } })
}

/** What a second process knows is in the database, so two of them need no restart. */
function story(databaseUrl: () => Promise<string | undefined>, processes: number): void {
  const servers: ScimServer[] = []
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.process.stop()
  })

  test('a deactivated account is deleted to clients, across restarts, and returns with POST', async () => {
    const config = await configuration()
    const data = mkdtempSync(join(tmpdir(), 'gatehouse-story-'))
    onTestFinished(() => {
      for (const folder of [config, data]) rmSync(folder, { recursive: true, force: true })
    })
    const url = await databaseUrl()
    const start = async () => {
      for (let n = 0; n < processes; n++) servers.push(await startScimServer(url, data, config))
    }
    const clients = () => servers.map((server) => server.client('/scim/entra'))
    await start()
    const [first] = clients()
    if (first === undefined) throw new Error('no client')
    const userName = fresh('leaver')
    const created = await first.post('/Users', { schemas: [coreUser], userName, active: true })
    expect(created.status, JSON.stringify(created.body)).toBe(201)
    const path = `/Users/${created.body.id}`
    expect((await first.delete(path)).status).toBe(204)

    const isGone = async () => {
      for (const client of clients()) {
        expect((await client.get(path)).status).toBe(404)
        expect((await client.patch(path, [{ op: 'replace', path: 'active', value: true }])).status).toBe(404)
        expect((await client.put(path, { schemas: [coreUser], userName })).status).toBe(404)
        expect((await client.delete(path)).status).toBe(404)
        expect((await client.filter('/Users', `userName eq "${userName}"`)).body.totalResults).toBe(0)
        expect((await client.filter('/Users', 'active eq false')).body.totalResults).toBe(0)
        expect((await client.get('/Users')).body.totalResults).toBe(0)
      }
    }
    await isGone()
    if (processes === 1) {
      await servers.pop()?.process.stop()
      await start()
      await isGone()
    }

    const [again, other = again] = clients()
    const back = await again?.post('/Users', { schemas: [coreUser], userName })
    expect(back?.status, JSON.stringify(back?.body)).toBe(201)
    expect(back?.body).toMatchObject({ id: created.body.id, active: true })
    // Entra deactivates first and deletes later, and expects to read the account in between.
    const off = await other?.patch(path, [{ op: 'replace', path: 'active', value: false }])
    expect(off?.status).toBe(200)
    expect((await again?.get(path))?.body).toMatchObject({ active: false })
  })
}

describe('a delete workflow that deactivates, on SQLite', () => story(async () => undefined, 1))

describe.skipIf(postgresUrl() === '')('a delete workflow that deactivates, two processes on PostgreSQL', () =>
  story(freshSchema, 2),
)
