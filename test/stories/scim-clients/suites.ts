import { describe } from 'vitest'
import type { ScimClient, ScimServer } from '#testing/scim/scim-client.ts'
import type { ScimLookups } from '#testing/scim/scim-lookups.ts'
import { scimServers } from '#testing/scim/scim-story.ts'
import { concurrencyStory } from './concurrency.ts'
import { entraStory } from './entra.ts'
import { oktaStory } from './okta.ts'
import { oktaSpecStory } from './okta-spec.ts'
import { oneloginStory } from './onelogin.ts'
import { sailpointPagesStory, sailpointStory } from './sailpoint.ts'
import { validatorGroupsStory, validatorStory } from './validator.ts'
import { wholeProtocolStory } from './whole-protocol.ts'

/** What a provider or its test program needs, and the path of its gateway. */
export interface ClientSuite {
  readonly name: string
  readonly path: string
  story(client: () => ScimClient): void
}

const entra: ClientSuite = { name: 'Entra ID', path: '/scim/entra', story: entraStory }
const okta: ClientSuite = { name: 'Okta', path: '/scim/okta', story: oktaStory }

/** Every provider with its own suite. */
export const providerSuites: readonly ClientSuite[] = [
  entra,
  okta,
  { name: 'SailPoint', path: '/scim/sailpoint', story: sailpointStory },
  { name: 'OneLogin', path: '/scim/onelogin', story: oneloginStory },
]

export const allSuites: readonly ClientSuite[] = [
  ...providerSuites,
  { name: "Okta's SPEC suite", path: '/scim/okta', story: oktaSpecStory },
  { name: "Microsoft's SCIM Validator", path: '/scim/entra', story: validatorStory },
]

/** What depends on the system with the users. The rest differs only in its requests. */
export const shortSystemSuites: readonly ClientSuite[] = [
  { name: "SailPoint's pages", path: '/scim/sailpoint', story: sailpointPagesStory },
  entra,
  { name: "Groups of Microsoft's SCIM Validator", path: '/scim/entra', story: validatorGroupsStory },
]
export const systemSuites: readonly ClientSuite[] = [...shortSystemSuites, okta]
/** For types of systems on which `init-targets.test.ts` runs the providers' own suites. */
export const pagesAndGroups: readonly ClientSuite[] = shortSystemSuites.filter((suite) => suite !== entra)

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
  /** `systemSuites` if absent. */
  readonly suites?: readonly ClientSuite[]
  more?(servers: () => readonly ScimServer[]): void
}

/** Suites and, with versions, what they add, in another system than the gateway's own database. */
export function describeSystem(system: ScimLookups, { suites = systemSuites, more }: SystemStory = {}): void {
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
