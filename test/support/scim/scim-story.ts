import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, test } from 'vitest'
import { type ScimServer, startScimServer } from '#testing/scim/scim-client.ts'
import { type OpenLookups, type ScimLookups, scimConfiguration } from '#testing/scim/scim-lookups.ts'

interface ScimServersOptions {
  /** SQLite if absent. */
  readonly databaseUrl?: () => Promise<string>
  /** Those of examples/scim if absent. */
  readonly lookups?: ScimLookups
  /** One if absent. */
  readonly processes?: number
}

/** Gateway processes of examples/scim on one database, for all tests of the calling file or suite. */
export function scimServers({ databaseUrl, lookups, processes = 1 }: ScimServersOptions = {}) {
  const servers: ScimServer[] = []
  const folders: string[] = []
  let opened: OpenLookups | undefined
  beforeAll(async () => {
    opened = await lookups?.open()
    const config = opened && (await scimConfiguration(opened))
    // One folder, since its keys sign the tokens that all of them accept.
    const data = await mkdtemp(join(tmpdir(), 'gatehouse-story-'))
    folders.push(data, ...(config === undefined ? [] : [config]))
    const url = await databaseUrl?.()
    for (let n = 0; n < processes; n++) servers.push(await startScimServer(url, data, config))
  })
  afterAll(async () => {
    for (const server of servers) await server.process.stop()
    for (const folder of folders) await rm(folder, { recursive: true, force: true })
    await opened?.close?.()
  })
  return (): readonly ScimServer[] => servers
}

/** What a system behind a gateway can do; everything if absent. */
export interface StoryOptions {
  /** Groups can be created. */
  readonly groups?: boolean
  /** Users can get another login. */
  readonly renames?: boolean
}

/** Defines the test only where the system has what it needs. */
export const testIf =
  (isThere = true) =>
  (title: string, body: () => Promise<void>): void => {
    if (isThere) test(title, body)
  }

/** A unique name in the story. */
export const fresh = (name: string): string => `${name}.${randomBytes(4).toString('hex')}`
