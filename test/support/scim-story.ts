import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import { type ScimClientName, scimClientNames, scimPath } from '#server/commands/scim-init.ts'
import { freshSchema, postgresUrl } from '#testing/postgres.ts'
import { type ScimClient, type ScimServer, startScimServer } from '#testing/scim-client.ts'
import { type InitializedScim, startInitializedScim } from '#testing/scim-init.ts'
import { type OpenLookups, type ScimLookups, scimConfiguration, throughDirectory } from '#testing/scim-lookups.ts'
import { inLdap, throughLdapDirectory } from '#testing/scim-on-ldap.ts'
import { inPostgresTables, inSqliteTables } from '#testing/scim-on-sql.ts'

/**
 * Where people are, and how stories look them up, beside the target of the example. A further system is a further
 * entry: its name, how it is started, and the configuration that leads there.
 */
const otherLookups: readonly ScimLookups[] = [
  throughDirectory,
  throughLdapDirectory,
  inLdap,
  inSqliteTables,
  inPostgresTables,
]

export const systemsWithVersions = otherLookups.filter(({ keepsVersions }) => keepsVersions)

type Suite = (client: () => ScimClient) => void

/**
 * Runs a suite against one gateway of examples/scim, in a process of its own, on SQLite, and in all systems there are. The
 * gateway of a known client also runs as `scim init` writes it, over TLS and under a name that isn't loopback.
 */
export function scimStory(name: string, path: string, suite: Suite): void {
  describe(name, () => suite(clientOf(scimServer(), path)))
  const known = scimClientNames.find((client) => scimPath(client) === path)
  if (known !== undefined) describe(`${name}, as scim init writes it`, () => suite(initializedClient(known)))
  inSystems(name, path, suite, otherLookups)
}

/** The same on PostgreSQL too. */
export function scimStoryOnAll(name: string, path: string, suite: Suite): void {
  scimStory(`${name}, on SQLite`, path, suite)
  onPostgres(name, path, suite)
}

/** On SQLite and on PostgreSQL, and of the other systems in those that keep versions. */
export function scimStoryWithVersions(name: string, path: string, suite: Suite): void {
  describe(`${name}, on SQLite`, () => suite(clientOf(scimServer(), path)))
  onPostgres(name, path, suite)
  inSystems(name, path, suite, systemsWithVersions)
}

function inSystems(name: string, path: string, suite: Suite, systems: readonly ScimLookups[]): void {
  for (const lookups of systems) {
    describe.skipIf(lookups.isThere?.() === false)(`${name}, ${lookups.name}`, () =>
      suite(clientOf(scimServer(undefined, lookups), path)),
    )
  }
}

function onPostgres(name: string, path: string, suite: Suite): void {
  describe.skipIf(postgresUrl() === '')(`${name}, on PostgreSQL`, () => suite(clientOf(scimServer(freshSchema), path)))
}

const startTimeout = 60_000

/** The gateways of examples/scim in one process for all tests of the file or suite that asks for it. */
export function scimServer(databaseUrl?: () => Promise<string>, lookups?: ScimLookups): () => ScimServer {
  let server: ScimServer
  let opened: OpenLookups | undefined
  let folder: string | undefined
  beforeAll(async () => {
    opened = await lookups?.open()
    folder = opened && (await scimConfiguration(opened))
    server = await startScimServer(await databaseUrl?.(), undefined, folder)
  }, startTimeout)
  afterAll(async () => {
    await server?.process.stop()
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    await opened?.close?.()
  })
  return () => server
}

function initializedClient(name: ScimClientName): () => ScimClient {
  let initialized: InitializedScim
  beforeAll(async () => {
    initialized = await startInitializedScim(name)
  }, startTimeout)
  afterAll(() => initialized?.stop())
  return () => initialized.client
}

const clientOf = (server: () => ScimServer, path: string) => (): ScimClient => server().client(path)

/** A name that nobody else in the story has. */
export const fresh = (name: string): string => `${name}.${randomBytes(4).toString('hex')}`
