import type { ApplicationConfig, Configuration } from '#config/configuration/configuration.ts'
import { cookieName } from '#requests/sessions/session-cookie.ts'
import type { PreparedMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { ApiCredential, ServedApi } from '#sdk/filter/filter-api.ts'

type Served = Pick<Configuration, 'applications' | 'chains'>

/**
 * The APIs of the configuration, in its order. URLs that are regular expressions are left out, since their address is
 * not known before a request.
 */
export function servedApis(configuration: Served): readonly ServedApi[] {
  const names = new Set<string>()
  return configuration.applications.flatMap((application) =>
    application.urls.flatMap(({ hosts, uri, pattern, chain, rules, filters }) => {
      if (pattern !== undefined) return []
      const mount = uri.endsWith('/') ? uri.slice(0, -1) : uri
      return filters.flatMap(({ api }) => {
        if (api === undefined) return []
        const name = uniqueName(mount, application.name, names)
        const credentials = api.hasOwnCredentials
          ? undefined
          : api.sessionOf === undefined
            ? credentialsOf(chain, application, configuration)
            : sessionOf(api.sessionOf, configuration)
        return [{ name, application: application.name, hosts, mount, rules, credentials, api }]
      })
    }),
  )
}

/** `/scim/people` is `scim-people`; the next one of that name is `scim-people-2`. */
function uniqueName(mount: string, application: string, taken: Set<string>): string {
  const words = (text: string): string =>
    text
      .split(/[^A-Za-z0-9]+/)
      .filter((word) => word !== '')
      .join('-')
  const base = words(mount) || words(application) || 'api'
  let name = base
  for (let number = 2; taken.has(name); number++) name = `${base}-${number}`
  taken.add(name)
  return name
}

function sessionOf(name: string, { applications }: Served): readonly ApiCredential[] | undefined {
  const cookies = applications.find((application) => application.name === name)?.cookies
  return cookies && [{ kind: 'session', cookie: cookieName(cookies) }]
}

/** Mechanisms that ask the user lead to a session; others that accept callers read a bearer token. */
function credentialsOf(
  chain: string | undefined,
  { cookies }: ApplicationConfig,
  { chains }: Served,
): readonly ApiCredential[] | undefined {
  if (chain === undefined) return []
  const mechanisms = mechanismsOf(chain, chains, new Set())
  if (mechanisms.every(({ className }) => className === 'auth.Anonymous')) return []
  const asksUsers = mechanisms.some(({ interactive }) => interactive)
  const readsTokens = mechanisms.some(({ interactive, callers }) => !interactive && callers !== undefined)
  const found: ApiCredential[] = [
    ...(readsTokens ? [{ kind: 'bearer' } as const] : []),
    ...(asksUsers && cookies !== undefined ? [{ kind: 'session', cookie: cookieName(cookies) } as const] : []),
  ]
  return found.length === 0 ? undefined : found
}

function mechanismsOf(name: string, chains: Configuration['chains'], seen: Set<string>): readonly PreparedMechanism[] {
  if (seen.has(name)) return []
  seen.add(name)
  return (chains.get(name)?.mechanisms ?? []).flatMap(({ mechanism }) => [
    ...(mechanism.includes.length === 0 ? [mechanism] : []),
    ...mechanism.includes.flatMap((included) => mechanismsOf(included, chains, seen)),
  ])
}
