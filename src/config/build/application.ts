import { buildIssuer } from '#config/build/issuer.ts'
import type { CookieConfig, UrlConfig } from '#config/configuration/configuration.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import { ParamsBuilder } from '#config/context/params.ts'
import { type ApplicationFrame, type CookieConfigSpec, type UrlSpec, urlSchema } from '#config/kinds/application.ts'
import type { Path } from '#kernel/issues.ts'
import { compilePattern, type SafePattern } from '#kernel/text/safe-pattern.ts'

const defaultAzTimeoutMillis = 3_000
const defaultIdleSeconds = 900
const hostName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$|^\[[0-9a-f:.]+\]$/

export function buildApplication(spec: ApplicationFrame, context: BuildContext): void {
  const { draft } = context.state
  const read = spec.urls.flatMap((url, i) => {
    const path = ['spec', 'urls', i]
    const read = context.part(urlSchema, url, path)
    return read === undefined ? [] : [{ read, path }]
  })
  const issuers = read.filter(({ read: { idp } }) => idp !== undefined)
  // OpenUnison does not mark identity providers as applications, and still gives them sessions.
  const isApp = spec.isApp !== false || issuers.length > 0
  const cookies = isApp ? buildCookies(spec.cookieConfig, context) : undefined
  if (cookies === undefined) {
    for (const { path } of issuers) {
      context.issues.error(
        [...path, 'idp'],
        'people log in here, which needs an application with cookies (cookieConfig)',
      )
    }
  }
  const all = read.map(({ read: url }) => url)
  const urls = read.map(({ read: url, path }) =>
    buildIssuer(url, buildUrl(url, path, context, cookies?.logoutUri, all), path, context),
  )
  const azTimeoutMillis = spec.azTimeoutMillis ?? defaultAzTimeoutMillis
  const config = { ...context.placed, azTimeoutMillis, cookies, urls }
  draft.applications.push({ config, document: context.document })
}

/** If the URL is that of the logout, the session step answers: it needs neither rules nor filters. */
function buildUrl(
  spec: UrlSpec,
  path: Path,
  context: BuildContext,
  logoutUri: string | undefined,
  all: readonly UrlSpec[],
): UrlConfig {
  const { issues } = context
  const isLogout = spec.regex !== true && spec.uri === logoutUri
  const hosts = spec.hosts.map((host, i) => readHost(host, [...path, 'hosts', i], context))
  const rules = context.rules(spec.azRules, [...path, 'azRules'])
  if ((spec.azRules ?? []).length === 0 && !isLogout) {
    issues.warning([...path, 'azRules'], 'without a rule this URL denies everyone')
  }
  const results = spec.results ?? {}
  const result = (name: keyof typeof results) =>
    context.optional('result group', results[name], [...path, 'results', name])
  context.state.draft.claims.push({
    document: context.document,
    path,
    hosts,
    uri: spec.uri,
    regex: spec.regex === true,
  })
  return {
    at: context.at(path),
    hosts,
    uri: spec.uri,
    pattern: readUri(spec, path, context),
    chain: context.optional('chain', spec.authChain, [...path, 'authChain']),
    rules,
    filters: buildFilters(spec, path, context, isLogout, all),
    results: {
      auSuccess: result('auSuccess'),
      auFail: result('auFail'),
      azSuccess: result('azSuccess'),
      azFail: result('azFail'),
    },
  }
}

function readHost(host: string, path: Path, context: BuildContext): string {
  const lower = host.toLowerCase()
  if (lower !== '*' && !hostName.test(lower)) {
    context.issues.error(path, `"${host}" is not a host: a name without scheme, port or path, or "*"`)
  }
  return lower
}

function readUri(spec: UrlSpec, path: Path, context: BuildContext): SafePattern | undefined {
  const at = [...path, 'uri']
  if (spec.regex !== true) {
    if (!/^\/[^?#]*$/.test(spec.uri)) context.issues.error(at, `must be a path that starts with "/", not "${spec.uri}"`)
    return undefined
  }
  try {
    return compilePattern(spec.uri)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    context.issues.error(at, `not a regular expression that can be used here: ${reason}`)
    return undefined
  }
}

/** Whether every caller who may pass is sent elsewhere, so that no filter is reached. */
const redirects = ({ results }: UrlSpec, { draft }: BuildContext['state']): boolean =>
  draft.resultGroups.get(results?.azSuccess ?? '')?.results.some(({ type }) => type === 'redirect') ?? false

function buildFilters(
  spec: UrlSpec,
  path: Path,
  context: BuildContext,
  isLogout: boolean,
  all: readonly UrlSpec[],
): UrlConfig['filters'] {
  const { state, issues, document } = context
  const written = spec.filterChain ?? []
  const filters = written.flatMap(({ className, params, secretParams }, i) => {
    const at = [...path, 'filterChain', i]
    const module = context.module(state.catalog.filters, className, [...at, 'className'])
    if (module === undefined) return []
    const read = context.params(params, [...at, 'params'], secretParams, [...at, 'secretParams'])
    const prepared = module.prepare(read, issues, context)
    for (const flow of prepared.flow === undefined ? [] : [prepared.flow, ...(prepared.flow.others ?? [])]) {
      state.draft.gateways.push({ application: context.placed.name, document, path: at, flow })
    }
    if (prepared.callable !== undefined) {
      state.draft.callables.push({ document, chain: spec.authChain, callable: prepared.callable })
    }
    return [{ ...prepared, at: context.at(at) }]
  })
  if (spec.idp === undefined && filters.length === written.length && !filters.some(({ answers }) => answers === true)) {
    if ((spec.proxyTo ?? '') !== '') {
      const page = portalInstead(spec, [...path, 'proxyTo'], context, all)
      if (page !== undefined) return [...filters, page]
      const message = openUnisonPages.test(spec.proxyTo ?? '')
        ? 'this page of OpenUnison is not served, so allowed requests get 404: let links lead to the portal, whose filters.Portal shows tokens if "token" names the path of their API'
        : 'Gatehouse does not proxy, so allowed requests get 404: put a reverse proxy in front of the application'
      issues.warning([...path, 'proxyTo'], message)
    } else if (!isLogout && !redirects(spec, state) && filters.every(({ answers }) => answers === false)) {
      issues.warning([...path, 'filterChain'], 'no filter of this URL answers requests')
    }
  }
  return filters
}

/** The host of the pages of OpenUnison's portal in its charts. */
const openUnisonPages = /^https?:\/\/ouhtml-/

/** Where OpenUnison proxies to the pages of its portal: the portal of Gatehouse, for the APIs below the URL. */
function portalInstead(
  { uri, regex, proxyTo = '' }: UrlSpec,
  at: Path,
  context: BuildContext,
  all: readonly UrlSpec[],
): UrlConfig['filters'][number] | undefined {
  if (regex === true || !openUnisonPages.test(proxyTo)) return undefined
  const { filters } = context.state.catalog
  const params = new ParamsBuilder(at)
  for (const [name, className] of [
    ['main', 'filters.Main'],
    ['register', 'filters.Register'],
    ['token', 'filters.TokenApi'],
  ] as const) {
    const api = all.find(
      (other) =>
        other.uri.startsWith(`${uri.replace(/\/$/, '')}/`) &&
        (other.filterChain ?? []).some((filter) => filters.find(filter.className)?.className === className),
    )
    if (api !== undefined) params.add(name, api.uri, at, at)
  }
  const module = filters.find('filters.Portal')
  if (module === undefined || (params.values('main').length === 0 && params.values('register').length === 0))
    return undefined
  const message =
    "the portal of Gatehouse is served here instead of OpenUnison's pages; filters.Portal in place of proxyTo does the same"
  context.issues.warning(at, message)
  return { ...module.prepare(params, context.issues, context), at: context.at(at) }
}

/** `scope` and `keyAlias` configure OpenUnison's cookies; sessions are in storage here and need neither. */
function buildCookies(spec: CookieConfigSpec | undefined, context: BuildContext): CookieConfig | undefined {
  if (spec === undefined || spec.cookiesEnabled === false) return undefined
  const { issues } = context
  const path = ['spec', 'cookieConfig']
  const name = spec.sessionCookieName ?? ''
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) {
    const message = name === '' ? 'is required where cookies are enabled' : `"${name}" cannot be the name of a cookie`
    issues.error([...path, 'sessionCookieName'], message)
  }
  const idleSeconds = spec.timeout ?? defaultIdleSeconds
  if (idleSeconds < 1) issues.error([...path, 'timeout'], `must be at least 1 second, not ${idleSeconds}`)
  const domain = spec.domain ?? '*'
  if (domain !== '*' && domain !== '' && !hostName.test(domain.toLowerCase().replace(/^\./, ''))) {
    issues.error([...path, 'domain'], `"${domain}" is not a domain`)
  }
  const logoutUri = spec.logoutURI ?? ''
  if (logoutUri !== '' && !logoutUri.startsWith('/')) issues.error([...path, 'logoutURI'], 'must start with "/"')
  const sameSite = spec.sameSite === undefined || spec.sameSite === 'Ignore' ? 'Lax' : spec.sameSite
  const secure = spec.secure ?? true
  if (sameSite === 'None' && !secure)
    issues.error([...path, 'sameSite'], 'browsers drop a None cookie that is not secure')
  return {
    name,
    domain: domain === '*' || domain === '' ? undefined : domain,
    secure,
    httpOnly: spec.httpOnly ?? true,
    sameSite,
    idleSeconds,
    logoutUri: logoutUri.startsWith('/') ? logoutUri : undefined,
  }
}
