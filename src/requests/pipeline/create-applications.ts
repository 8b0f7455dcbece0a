import type { ApplicationConfig, Configuration, UrlConfig } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import type { Scope } from '#kernel/scope.ts'
import { tracer } from '#kernel/tracing.ts'
import type { Chain, ChainLink } from '#requests/routing/chain.ts'
import type { Application, Url } from '#requests/routing/routes.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { HostFor } from '#sdk/host/host.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'

interface CreationParts {
  readonly configuration: Configuration
  readonly host: HostFor<FilterHost & AuthHost>
  /** Closes what is created. */
  readonly scope: Scope
}

/** Fills `chains`, which others may refer to before the mechanisms exist. */
export async function createChains(parts: CreationParts, chains: Map<string, Chain>): Promise<void> {
  const { configuration, host, scope } = parts
  await createEach(configuration.chains, async ([name, config]) => {
    const links: ChainLink[] = []
    for (const { name: linkName, uri, required, at, mechanism } of config.mechanisms) {
      const created = await createAt(at, () => mechanism.create(host(linkName, mechanism.className, at)))
      const { interactive, includes } = mechanism
      links.push({ name: linkName, required, mechanism: scope.own(created), uri, interactive, includes })
    }
    const { level, finishOnRequiredSuccess, limits, root = configuration.directoryRoot.toString() } = config
    chains.set(name, { name, level, limits, finishOnRequiredSuccess, links, root })
  })
}

interface ApplicationParts extends CreationParts {
  readonly chains: ReadonlyMap<string, Chain>
}

export async function createApplications(parts: ApplicationParts): Promise<Application[]> {
  const applications: Application[] = []
  await createEach(parts.configuration.applications, async (config) => {
    const { name, azTimeoutMillis, cookies, setAside } = config
    const urls: Url[] = []
    for (const url of config.urls) urls.push(await createUrl(config, url, parts))
    applications.push({ name, azTimeoutMillis, cookies, urls, setAside })
  })
  return applications
}

async function createUrl(application: ApplicationConfig, config: UrlConfig, parts: ApplicationParts): Promise<Url> {
  const { configuration, chains, host, scope } = parts
  const filters = []
  for (const filter of config.filters) {
    const create = () => filter.create(host(application.name, filter.className, filter.at))
    filters.push(traced(filter.className, scope.own(await createAt(filter.at, create))))
  }
  const chain = config.chain === undefined ? undefined : chains.get(config.chain)
  if (config.chain !== undefined && chain === undefined) throw new Error(`${config.at}: no chain "${config.chain}"`)
  const answering = config.filters.find((filter) => filter.answers === true)
  const results = (name: string | undefined) =>
    name === undefined ? undefined : configuration.resultGroups.get(name)?.results
  return {
    at: config.at,
    hosts: config.hosts,
    uri: config.uri,
    pattern: config.pattern,
    chain,
    otherChains: config.filters.flatMap((filter) => filter.chains ?? []).flatMap((name) => chains.get(name) ?? []),
    rules: config.rules,
    filters,
    errors: answering?.errors ?? config.errors ?? jsonErrors,
    takesForms: answering?.takesForms ?? false,
    openPaths: config.filters[0]?.openPaths,
    looks: config.filters.flatMap(({ look }) => look ?? []),
    extendsSession: !config.filters.some((filter) => filter.leavesSession === true),
    results: {
      auSuccess: results(config.results.auSuccess),
      auFail: results(config.results.auFail),
      azSuccess: results(config.results.azSuccess),
      azFail: results(config.results.azFail),
    },
  }
}

/** The filter itself while tracing is off. */
function traced(className: string, filter: Filter): Filter {
  const traces = tracer
  if (traces === undefined) return filter
  const attributes = { 'gatehouse.class': className }
  const start = { name: `filter ${className}`, kind: 'internal', parent: 'current', attributes } as const
  return { handle: (exchange, next) => traces.span(start, () => filter.handle(exchange, next)) }
}
