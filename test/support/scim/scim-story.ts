import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import { type ScimClientName, scimClientNames, scimPath } from '#server/init/scim.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { type ScimClient, type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { type InitializedScim, startInitializedScim } from '#testing/scim/scim-init.ts'
import { type OpenLookups, type ScimLookups, scimConfiguration, throughDirectory } from '#testing/scim/scim-lookups.ts'
import { inLdap, throughLdapDirectory } from '#testing/scim/scim-on-ldap.ts'
import { inPostgresTables, inSqliteTables } from '#testing/scim/scim-on-sql.ts'

/**
 * The systems with users, and their lookups, beside the target of the example. To add a system, add an entry with its
 * name, its start and its configuration.
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
 * Runs a suite against one gateway of examples/scim, in its own process, on SQLite, and on all other systems. The
 * gateway of a known client also runs from the output of `scim init`, over TLS and under a name that isn't loopback.
 */
export function scimStory(name: string, path: string, suite: Suite): void {
  describe(name, () => suite(clientOf(scimServer(), path)))
  const known = scimClientNames.find((client) => scimPath(client) === path)
  if (known !== undefined) describe(`${name}, as written by scim init`, () => suite(initializedClient(known)))
  inSystems(name, path, suite, otherLookups)
}

/** The same on PostgreSQL too. */
export function scimStoryOnAll(name: string, path: string, suite: Suite): void {
  scimStory(`${name}, on SQLite`, path, suite)
  onPostgres(name, path, suite)
}

/** On SQLite and PostgreSQL, and on the other systems with versions. */
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

/** The gateways of examples/scim in one process for all tests of the calling file or suite. */
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

/** A unique name in the story. */
export const fresh = (name: string): string => `${name}.${randomBytes(4).toString('hex')}`
