import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/postgres.ts'
import { type ScimClient, type ScimServer, startScimServer } from '#testing/scim-client.ts'

/** Tells a suite against one gateway of examples/scim, in a process of its own, on SQLite. */
export function scimStory(name: string, path: string, suite: (client: () => ScimClient) => void): void {
  describe(name, () => suite(clientOf(scimServer(), path)))
}

/** The same on SQLite and on PostgreSQL. */
export function scimStoryOnBoth(name: string, path: string, suite: (client: () => ScimClient) => void): void {
  describe(`${name}, on SQLite`, () => suite(clientOf(scimServer(), path)))
  describe.skipIf(postgresUrl() === '')(`${name}, on PostgreSQL`, () => suite(clientOf(scimServer(freshSchema), path)))
}

/** The gateways of examples/scim in one process for all tests of the file or suite that asks for it. */
export function scimServer(databaseUrl?: () => Promise<string>): () => ScimServer {
  let server: ScimServer
  beforeAll(async () => {
    server = await startScimServer(await databaseUrl?.())
  })
  afterAll(async () => {
    await server?.process.stop()
  })
  return () => server
}

const clientOf = (server: () => ScimServer, path: string) => (): ScimClient => server().client(path)

/** A name that nobody else in the story has. */
export const fresh = (name: string): string => `${name}.${randomBytes(4).toString('hex')}`
