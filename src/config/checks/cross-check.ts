import type { UrlConfig } from '#config/configuration/configuration.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import type { Draft, Reference, UrlClaim } from '#config/context/draft.ts'
import type { ParsedObject } from '#config/sources/parse.ts'
import { isStored } from '#config/sources/stored-objects.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { defaultNotifier, isDefaultNotifier } from '#sdk/notifier/notifier.ts'
import type { PreparedTask } from '#sdk/workflow/workflow-task.ts'

/** Two objects of one kind may not share a name, even in different namespaces: others refer to them by name alone. */
export function checkDuplicates(objects: readonly ParsedObject[], { rivals }: Draft, issues: Issues): void {
  const first = new Map<string, ParsedObject>()
  for (const object of objects) {
    if (object.name === undefined) continue
    const key = `${object.kind.kind}/${object.name}`
    const earlier = first.get(key)
    if (earlier === undefined) {
      first.set(key, object)
      continue
    }
    const place = earlier.document.at(['metadata', 'name'])
    const message = `another ${object.kind.kind} is named "${object.name}" (${place})`
    issues.for(object.document).error(['metadata', 'name'], message)
    rivals.push({ first: earlier.document, later: object.document })
  }
}

/** No two URLs may have the same host and path, since only one of them could answer. */
export function checkClaims({ claims, rivals }: Draft, issues: Issues): void {
  const first = new Map<string, UrlClaim>()
  const [ofDatabase, written] = [claims.filter(ofStored), claims.filter((claim) => !ofStored(claim))]
  for (const claim of [...written, ...ofDatabase]) {
    for (const [i, host] of claim.hosts.entries()) {
      const path = claim.regex ? claim.uri : claim.uri.replace(/\/$/, '')
      const key = JSON.stringify([host, claim.regex, path])
      const earlier = first.get(key)
      if (earlier === undefined) {
        first.set(key, claim)
        continue
      }
      const message = `${host} ${claim.uri} is already claimed (${earlier.document.at(earlier.path)})`
      issues.for(claim.document).error([...claim.path, 'hosts', i], message)
      // What operators add never takes away what is written.
      if (!ofStored(claim))
        rivals.push({ first: earlier.part ?? earlier.document, later: claim.part ?? claim.document })
    }
  }
}

const ofStored = ({ document }: UrlClaim): boolean => isStored(document.file)

/** A webhook has no address of a user, and a mail server no channel. */
export function checkNotifiers({ notifiers }: Draft, references: readonly Reference[], issues: Issues): void {
  const names = [...notifiers.keys()]
  for (const { kind, name, path, document } of references) {
    if (kind !== 'notifier' && kind !== 'channel notifier') continue
    const found = name === defaultNotifier ? names.find((one) => isDefaultNotifier(one, names)) : name
    const notifier = found === undefined ? undefined : notifiers.get(found)?.notifier
    const needed = kind === 'notifier' ? 'mails' : 'channel messages'
    if (notifier === undefined || notifier.delivers === needed || notifier.delivers === 'both') continue
    const which = name === defaultNotifier ? `the default Notifier "${found}"` : `the Notifier "${name}"`
    const advice =
      kind === 'channel notifier'
        ? 'name one of the class notifiers.Webhook'
        : `name one of the class notifiers.Smtp${name === defaultNotifier ? ', or call that one "default"' : ''}`
    issues
      .for(document)
      .error(path, `${which} is of the class ${notifier.className}, which cannot send ${needed}: ${advice}`)
  }
}

/** Resources of a type would be users of a gateway that reads their target, and a type that no gateway names is not served. */
export function checkResourceTypes(draft: Draft, references: readonly Reference[], issues: Issues): void {
  const { resourceTargets, resourceTypes, gateways } = draft
  checkResourceStores(draft, issues)
  for (const { flow, document } of gateways) {
    const type = flow.targetAt === undefined ? undefined : resourceTargets.get(flow.target ?? '')
    if (flow.targetAt === undefined || type === undefined) continue
    const place = type.at(['spec', 'target'])
    const message = `target "${flow.target}" stores a resource type (${place}), so these resources would be users here; give the type a target of its own`
    issues.for(document).error(flow.targetAt, message)
  }
  const named = new Set(references.flatMap(({ kind, name }) => (kind === 'resource type' ? [name] : [])))
  for (const [name, { document }] of resourceTypes) {
    if (named.has(name)) continue
    const message = `no gateway serves "${name}": name it in "resourceTypes" of a filters.ScimGateway`
    issues.for(document).warning(['metadata', 'name'], message)
  }
}

/** Where another target has the same users, the resources of a type would be users there, or those of another type. */
function checkResourceStores({ resourceTargets, targets }: Draft, issues: Issues): void {
  const storeOf = (name: string): string | undefined => targets.get(name)?.config.target.store?.(name)
  for (const [name, document] of resourceTargets) {
    const own = storeOf(name)
    const other = [...targets].find(([one]) => own !== undefined && one !== name && storeOf(one) === own)
    if (other === undefined) continue
    const place = other[1].document.at(['metadata', 'name'])
    const message = `target "${name}" has the same "directory" as target "${other[0]}" (${place}), which would show these resources too; give it a "directory" of its own`
    issues.for(document).error(['spec', 'target'], message)
  }
}

/** Rules compare names without regard to letter case, and rates of clients with it. */
export function checkClients({ chains }: Draft, issues: Issues): void {
  const known = new Map<string, { readonly client: string; readonly place: string }>()
  for (const { config, document } of chains.values()) {
    for (const [i, { mechanism }] of config.mechanisms.entries()) {
      const path = ['spec', 'authMechs', i]
      for (const client of mechanism.clients ?? []) {
        const first = known.get(client.toLowerCase()) ?? { client, place: document.at(path) }
        known.set(client.toLowerCase(), first)
        if (first.client === client) continue
        const message = `client "${client}" differs from client "${first.client}" (${first.place}) in letter case only, and rules do not distinguish them; choose another name`
        issues.for(document).error(path, message)
      }
    }
  }
}

/** The first password that such a task gets would fail its run. */
export function checkPasswords({ workflows, targets }: Draft, issues: Issues): void {
  const check = (tasks: readonly PreparedTask[], document: ConfigDocument): void => {
    for (const { flow, path, onSuccess, onFailure } of tasks) {
      const { target = '', password = false } = flow.provisions ?? {}
      if (password && targets.get(target)?.config.target.passwords === false) {
        const message = `target "${target}" cannot store passwords: remove "setPassword", or configure how the target stores them`
        issues.for(document).error([...path, 'setPassword'], message)
      }
      check([...onSuccess, ...onFailure], document)
    }
  }
  for (const { config, document } of workflows.values()) check(config.tasks, document)
}

/** An application without a login, and one whose callers would have to log in with a browser. */
export function checkTrusts(draft: Draft, issues: Issues): void {
  const { trusts, issuers } = draft
  for (const { config, document } of issuers) {
    for (const { clientId, chain, exchange } of config.trusts) {
      const asks = exchange === undefined ? undefined : whoAsks(chain, draft, new Set())
      if (asks === undefined) continue
      const object = [...trusts.values()].find((one) => one.trust.clientId === clientId)
      const path = object === undefined ? [] : ['spec', 'authChainName']
      const message = `the chain "${chain}" asks people to log in by "${asks.name}", but callers that exchange tokens by "${clientId}" have no browser`
      issues.for(object?.document ?? document).warning(path, `${message}: name a chain for bearer tokens`)
    }
  }
  if (issuers.length > 0) return
  for (const { document } of trusts.values()) {
    issues
      .for(document)
      .warning(['kind'], 'there is no identity provider (a URL with idp) that this Trust could belong to')
  }
}

/** A user who gives input must be recognized at the next request, so that needs a session. */
export function checkLogins(draft: Draft, issues: Issues): void {
  for (const { config, document } of draft.applications) {
    if (config.cookies !== undefined) continue
    for (const [i, { chain }] of config.urls.entries()) {
      const asks = chain === undefined ? undefined : whoAsks(chain, draft, new Set())
      if (asks === undefined) continue
      const path = ['spec', 'urls', i, 'authChain']
      const message = `the chain "${chain}" asks people to log in by "${asks.name}", which needs an application with cookies`
      if (asks.required) issues.for(document).error(path, message)
      else issues.for(document).warning(path, message)
    }
  }
}

/** Applications that share a session may leave its logout to one of them. */
export function checkLogouts({ applications }: Draft, issues: Issues): void {
  for (const { config, document } of applications) {
    const { cookies } = config
    const logout = cookies?.logoutUri
    if (logout === undefined) continue
    const hosts = config.urls.flatMap((url) => url.hosts)
    const ends = applications.some(
      ({ config: { cookies: other, urls } }) =>
        other?.logoutUri === logout &&
        other.name === cookies?.name &&
        other.domain === cookies.domain &&
        urls.some((url) => covers(url, logout) && sharesHost(url.hosts, hosts)),
    )
    if (ends) continue
    const message = `no URL of this application covers ${logout}, so no user can log out there`
    issues.for(document).warning(['spec', 'cookieConfig', 'logoutURI'], message)
  }
}

const covers = ({ uri, pattern }: UrlConfig, path: string): boolean =>
  pattern === undefined ? `${path}/`.startsWith(uri.endsWith('/') ? uri : `${uri}/`) : pattern.matches(path)

const sharesHost = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((host) => host === '*' || others.includes(host)) || others.includes('*')

const openUnisonPage = /^(?:https?:\/\/([^/:]+)(?::\d+)?)?(\/auth\/forms\/[\w-]+\.jsp)$/i

/** Results often lead to pages that are part of OpenUnison. Here that would be a page that does not exist. */
export function dropOpenUnisonPages({ resultGroups, applications }: Draft, issues: Issues): void {
  const urls = applications.flatMap(({ config }) => config.urls)
  for (const [name, group] of resultGroups) {
    const results = group.results.filter(({ type, source, value }, i) => {
      const [, host, page] = (type === 'redirect' && source === 'static' && openUnisonPage.exec(value)) || []
      if (page === undefined) return true
      const here = host === undefined ? urls : urls.filter(({ hosts }) => hosts.includes(host.toLowerCase()))
      if (here.length === 0 || here.some((url) => url.uri.startsWith('/auth/') && covers(url, page))) return true
      const message = `"${value}" is a page of OpenUnison that does not exist here, so there is no redirect: Gatehouse shows its own page`
      issues.for(group.document).warning(['spec', i, 'value'], message)
      return false
    })
    resultGroups.set(name, { ...group, results })
  }
}

/** A filter that shows the profiles of a portal needs the one at the URL that it names. */
export function checkProfiles({ applications }: Draft, issues: Issues): void {
  for (const { config, document } of applications) {
    for (const [i, { filters }] of config.urls.entries()) {
      for (const [j, { profileOf }] of filters.entries()) {
        const portal = applications.find(({ config: { name } }) => name === profileOf?.application)
        // A missing application is reported as a missing reference.
        if (profileOf === undefined || portal === undefined) continue
        const urls = portal.config.urls.filter(({ uri }) => uri === profileOf.uri)
        if (urls.some((url) => url.filters.some(({ className }) => className === 'filters.Main'))) continue
        const message = `the application "${profileOf.application}" has no filters.Main at "${profileOf.uri}"`
        issues.for(document).error(['spec', 'urls', i, 'filterChain', j], message)
      }
    }
  }
}

/** The first mechanism that needs user input, required ones first. */
function whoAsks(
  chain: string,
  draft: Draft,
  seen: Set<string>,
): { readonly name: string; readonly required: boolean } | undefined {
  if (seen.has(chain)) return undefined
  seen.add(chain)
  const found = (draft.chains.get(chain)?.config.mechanisms ?? []).flatMap(({ name, required, mechanism }) => {
    if (mechanism.interactive) return [{ name, required }]
    return mechanism.includes.flatMap((included) => {
      const inner = whoAsks(included, draft, seen)
      return inner === undefined ? [] : [{ name: inner.name, required: required && inner.required }]
    })
  })
  return found.find(({ required }) => required) ?? found[0]
}

interface Step {
  readonly to: string
  readonly path: Path
}

interface Stop {
  readonly document: ConfigDocument
  readonly steps: readonly Step[]
}

/** Nothing may run itself, directly or indirectly. */
export function checkCycles(draft: Draft, issues: Issues): void {
  const chains = mapValues(draft.chains, ({ config, document }) => ({
    document,
    steps: config.mechanisms.flatMap(({ mechanism }, i) =>
      mechanism.includes.map((to) => ({ to, path: ['spec', 'authMechs', i] })),
    ),
  }))
  const workflows = mapValues(draft.workflows, ({ config, document }) => ({
    document,
    steps: callsOf(config.tasks),
  }))
  const orgs = new Map<string, Stop>()
  for (const { config, document } of draft.orgs.values()) {
    const { uuid, parent } = config.spec
    const twin = orgs.get(uuid)
    if (twin !== undefined) {
      issues.for(document).error(['spec', 'uuid'], `another org has the uuid "${uuid}"`)
      draft.rivals.push({ first: twin.document, later: document })
    }
    const steps = parent === undefined || parent === '' ? [] : [{ to: parent, path: ['spec', 'parent'] }]
    if (twin === undefined) orgs.set(uuid, { document, steps })
  }
  reportCycles(chains, (way) => `the chain includes itself: ${way}`, issues)
  reportCycles(workflows, (way) => `the workflow calls itself: ${way}`, issues)
  reportCycles(orgs, (way) => `the org is its own parent: ${way}`, issues)
}

function callsOf(tasks: readonly PreparedTask[]): Step[] {
  return tasks.flatMap((task) => [
    ...task.calls.map((to) => ({ to, path: task.path })),
    ...callsOf(task.onSuccess),
    ...callsOf(task.onFailure),
  ])
}

/** Reports each cycle once, at its first member by name. */
function reportCycles(stops: ReadonlyMap<string, Stop>, message: (way: string) => string, issues: Issues): void {
  const done = new Set<string>()
  for (const start of [...stops.keys()].sort()) {
    const found = wayBack(start, stops, done)
    done.add(start)
    const stop = stops.get(start)
    if (found === undefined || stop === undefined) continue
    issues.for(stop.document).error(found.path, message([start, ...found.names].join(' → ')))
  }
}

/** The shortest path from `start` to itself that avoids what was searched before. */
function wayBack(
  start: string,
  stops: ReadonlyMap<string, Stop>,
  avoid: ReadonlySet<string>,
): { names: readonly string[]; path: Path } | undefined {
  const seen = new Set<string>()
  let front = (stops.get(start)?.steps ?? []).map(({ to, path }) => ({ names: [to], path }))
  while (front.length > 0) {
    const next: typeof front = []
    for (const way of front) {
      const here = way.names.at(-1) ?? start
      if (here === start) return way
      if (seen.has(here) || avoid.has(here)) continue
      seen.add(here)
      for (const { to } of stops.get(here)?.steps ?? []) next.push({ names: [...way.names, to], path: way.path })
    }
    front = next
  }
  return undefined
}

function mapValues<A, B>(map: ReadonlyMap<string, A>, change: (value: A) => B): Map<string, B> {
  return new Map(Array.from(map, ([key, value]) => [key, change(value)]))
}
