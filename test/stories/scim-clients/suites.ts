import { describe } from 'vitest'
import type { ScimClient, ScimServer } from '#testing/scim/scim-client.ts'
import type { ScimLookups } from '#testing/scim/scim-lookups.ts'
import { scimServers } from '#testing/scim/scim-story.ts'
import { concurrencyStory } from './concurrency.ts'
import { entraStory } from './entra.ts'
import { oktaStory } from './okta.ts'
import { oktaSpecStory } from './okta-spec.ts'
import { oneloginStory } from './onelogin.ts'
import { sailpointStory } from './sailpoint.ts'
import { validatorStory } from './validator.ts'
import { wholeProtocolStory } from './whole-protocol.ts'

/** What a provider or its test program needs, and the path of its gateway. */
export interface ClientSuite {
  readonly name: string
  readonly path: string
  story(client: () => ScimClient): void
}

/** The broadest one: every system runs it. */
export const entraSuite: ClientSuite = { name: 'Entra ID', path: '/scim/entra', story: entraStory }

/** The two with the most habits. Other systems than the database need no more: the rest differs only in its requests. */
export const broadSuites: readonly ClientSuite[] = [entraSuite, { name: 'Okta', path: '/scim/okta', story: oktaStory }]

/** Every provider with its own suite. */
export const providerSuites: readonly ClientSuite[] = [
  ...broadSuites,
  { name: 'SailPoint', path: '/scim/sailpoint', story: sailpointStory },
  { name: 'OneLogin', path: '/scim/onelogin', story: oneloginStory },
]

export const allSuites: readonly ClientSuite[] = [
  ...providerSuites,
  { name: "Okta's SPEC suite", path: '/scim/okta', story: oktaSpecStory },
  { name: "Microsoft's SCIM Validator", path: '/scim/entra', story: validatorStory },
]

/** Runs the suites on the first of the processes. */
export function describeSuites(servers: () => readonly ScimServer[], suites: readonly ClientSuite[]): void {
  for (const { name, path, story } of suites) describe(name, () => story(() => firstOf(servers).client(path)))
}

/** What a system with versions adds: the rest of the protocol, and changes at the same time through all processes. */
export function describeVersions(servers: () => readonly ScimServer[], atOnce?: 12 | 50): void {
  const path = '/scim/v2'
  describe('the rest of the protocol', () => wholeProtocolStory(() => firstOf(servers).client(path)))
  describe('concurrent requests', () => concurrencyStory(() => servers().map((one) => one.client(path)), atOnce))
}

interface SystemStory {
  /** The broad ones if absent. */
  readonly suites?: readonly ClientSuite[]
  more?(servers: () => readonly ScimServer[]): void
}

/** Suites and, with versions, what they add, in another system than the gateway's own database. */
export function describeSystem(system: ScimLookups, { suites = broadSuites, more }: SystemStory = {}): void {
  describe.skipIf(system.isThere?.() === false)(`SCIM clients ${system.name}`, () => {
    const servers = scimServers({ lookups: system })
    describeSuites(servers, suites)
    if (system.keepsVersions) describeVersions(servers)
    more?.(servers)
  })
}

export function firstOf(servers: () => readonly ScimServer[]): ScimServer {
  const [first] = servers()
  if (first === undefined) throw new Error('no gateway was started')
  return first
}
