import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { coreGroup, coreUser, type ScimClient, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'

/** examples/scim, where the gateway for Entra lets groups share names. */
function configuration(folder: string): string {
  const config = join(folder, 'config')
  cpSync('examples/scim', config, { recursive: true })
  const file = join(config, 'clients.yaml')
  const shared = 'client: entra\n            groupNames: shared\n            groupDisplayName: displayName\n'
  const text = readFileSync(file, 'utf8')
  const changed = text.replace('client: entra\n', shared)
  if (changed === text) throw new Error('examples/scim/clients.yaml has changed')
  writeFileSync(file, changed)
  return config
}

function nestedGroups(clients: (path: string) => readonly ScimClient[]): void {
  const nth = (n: number, path = '/scim/v2'): ScimClient => {
    const all = clients(path)
    const client = all[n % all.length]
    if (client === undefined) throw new Error('no client')
    return client
  }
  const user = async (n: number): Promise<string> =>
    (await nth(n).post('/Users', { schemas: [coreUser], userName: fresh('user') })).body.id
  const group = async (n: number, ...members: string[]): Promise<string> => {
    const body = { schemas: [coreGroup], displayName: fresh('group'), members: members.map((value) => ({ value })) }
    const created = await nth(n).post('/Groups', body)
    expect(created.status).toBe(201)
    return created.body.id
  }
  const added = (...members: string[]) => [{ op: 'add', path: 'members', value: members.map((value) => ({ value })) }]

  test('a user is in the groups that contain its group, until the group in between is deleted', async () => {
    const ann = await user(0)
    const team = await group(1, ann)
    const department = await group(0, team)
    const company = await group(1, department)
    const groups = async (n: number) =>
      ((await nth(n).get(`/Users/${ann}`)).body.groups as { value: string; type: string }[]).map(
        ({ value, type }) => `${type} ${value}`,
      )
    for (const n of [0, 1]) {
      expect((await groups(n)).toSorted()).toEqual(
        [`direct ${team}`, `indirect ${department}`, `indirect ${company}`].toSorted(),
      )
    }
    const refused = await nth(0).patch(`/Groups/${team}`, added(company))
    expect([refused.status, refused.body.scimType]).toEqual([400, 'invalidValue'])
    expect((await nth(1).delete(`/Groups/${department}`)).status).toBe(204)
    expect(await groups(0)).toEqual([`direct ${team}`])
    expect(await nth(0).members(company)).toEqual([])
  })

  test('of 100 concurrent changes of members, half of them groups, none is lost', async () => {
    const whole = await group(0)
    const members = await Promise.all(Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? user(n) : group(n))))
    const answers = await Promise.all(
      members.map((id, n) => nth(Math.floor(n / 2)).patch(`/Groups/${whole}`, added(id))),
    )
    expect(answers.map(({ status }) => status).filter((status) => status >= 300)).toEqual([])
    for (const n of [0, 1]) expect(await nth(n).members(whole)).toEqual(members.toSorted())
  })

  test('one of two that close a cycle at the same time wins', async () => {
    for (let round = 0; round < 5; round++) {
      const [a, b] = [await group(0), await group(1)]
      const answers = await Promise.all([
        nth(0).patch(`/Groups/${a}`, added(b)),
        nth(1).patch(`/Groups/${b}`, added(a)),
      ])
      expect(answers.filter(({ status }) => status === 400)).toHaveLength(1)
      expect([...(await nth(0).members(a)), ...(await nth(1).members(b))]).toHaveLength(1)
    }
  })

  test('one of 20 identical concurrent groups is created', async () => {
    const body = { schemas: [coreGroup], displayName: fresh('same') }
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => nth(n).post('/Groups', body)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(19).fill(409)])
  })

  test('if names are shared, two groups have one name and their own members', async () => {
    const displayName = fresh('Sales')
    const people = [await user(0), await user(1)]
    const answers = await Promise.all(
      people.map((value, n) =>
        nth(n, '/scim/entra').post('/Groups', {
          schemas: [coreGroup],
          displayName,
          externalId: `${n}`,
          members: [{ value }],
        }),
      ),
    )
    expect(answers.map(({ status, body }) => [status, body.displayName])).toEqual(Array(2).fill([201, displayName]))
    const found = await nth(0, '/scim/entra').filter('/Groups', `displayName eq "${displayName}"`)
    expect(found.body.totalResults).toBe(2)
    for (const [n, { body }] of answers.entries()) {
      expect(await nth(n + 1, '/scim/entra').members(body.id)).toEqual([people[n]])
    }
  })
}

function onServers(count: number, databaseUrl: () => Promise<string | undefined>): void {
  const servers: ScimServer[] = []
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-story-'))
    const config = configuration(folder)
    const url = await databaseUrl()
    for (let n = 0; n < count; n++) servers.push(await startScimServer(url, join(folder, 'data'), config))
  }, 120_000)
  afterAll(async () => {
    for (const server of servers) await server.process.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  nestedGroups((path) => servers.map((server) => server.client(path)))
}

describe('nested groups, on SQLite', () => onServers(1, async () => undefined))

describe.skipIf(postgresUrl() === '')('nested groups, through two processes on one PostgreSQL', () =>
  onServers(2, freshSchema),
)
