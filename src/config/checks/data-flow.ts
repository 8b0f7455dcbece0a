import type { Catalog } from '#config/configuration/catalog.ts'
import type { ConfigDocument } from '#config/context/config-document.ts'
import type { CallableUrl, Draft, Gateway, Reference } from '#config/context/draft.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { nearestName } from '#kernel/suggest.ts'
import type { CallerKind } from '#sdk/auth/auth-mechanism.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import { FlowWalk, gatewayMaps, isPseudo, listed, type Missing, type Start, type UnboundWrite } from './flow-walk.ts'

/**
 * Follows attributes from each gateway through its workflows to the targets and back, and warns where one is used
 * that nothing produces. It warns only if no path to the place produces the attribute, and never after something
 * whose attributes are unknown.
 */
export function checkDataFlow(draft: Draft, references: readonly Reference[], catalog: Catalog, issues: Issues): void {
  const walk = new FlowWalk(draft, catalog)
  for (const start of starts(draft, references)) walk.run(start)
  const missing = walk.missing()
  for (const { place, document, use, origin, available } of missing) {
    const { attribute, path } = place
    const message = `"${attribute}" is ${use}, but nothing produces it: ${origin}${hint(attribute, available)}`
    issues.for(document).warning(path, message)
  }
  for (const gateway of draft.gateways) checkReadBack(gateway, walk, missing, issues)
  const source = {
    tasks: (workflow: string) => draft.workflows.get(workflow)?.config.tasks,
    mapping: (target: string) => draft.targets.get(target)?.config.mapping,
  }
  for (const { flow, document } of draft.gateways) {
    const found = flow.target === undefined ? undefined : draft.targets.get(flow.target)
    if (flow.targetAt !== undefined && found?.config.target.lookups === false) {
      const message = `target "${flow.target}" has no look-ups, so this gateway cannot read users and groups from it`
      issues.for(document).error(flow.targetAt, message)
    }
    const storesOf = (target: string) => draft.targets.get(target)?.config.target.storable
    const problems = flow.check?.((workflow) => workflowWrites(source, workflow), storesOf) ?? []
    for (const { path, message, isError } of problems)
      issues.for(document)[isError === true ? 'error' : 'warning'](path, message)
  }
}

/** Gateways start workflows with what they map; other starters may pass any attribute. */
function starts(draft: Draft, references: readonly Reference[]): Start[] {
  const fromGateways = draft.gateways.flatMap((gateway) =>
    gateway.flow.workflows.map((workflow) => ({ workflow, gateway })),
  )
  const byGateway = new Set(fromGateways.map(({ workflow }) => workflow))
  const called = new Set<string>()
  const elsewhere = new Set<string>()
  // Only a gateway that serves a type runs its workflows.
  const types = new Set(draft.resourceTargets.values())
  for (const { kind, name, path, document } of references) {
    if (kind !== 'workflow' || types.has(document)) continue
    if (isWorkflow(draft, document)) called.add(name)
    else if (!draft.gateways.some((gateway) => gateway.document === document && startsWith(path, gateway.path))) {
      elsewhere.add(name)
    }
  }
  const open = [...draft.workflows.keys()].filter(
    (name) => elsewhere.has(name) || !(byGateway.has(name) || called.has(name)),
  )
  return [...fromGateways, ...open.map((workflow) => ({ workflow, gateway: undefined }))]
}

function checkReadBack(gateway: Gateway, walk: FlowWalk, missing: readonly Missing[], issues: Issues): void {
  const { flow, document } = gateway
  const stored = flow.target === undefined ? undefined : walk.attributesOf(flow.target)
  if (flow.target === undefined || stored === undefined || stored.opaque) return
  const given = new Set(flow.given.map((name) => name.toLowerCase()))
  const absent = flow.reads.filter(({ attribute }) => {
    const key = attribute.toLowerCase()
    return !given.has(key) && !stored.names.has(key) && !isPseudo(key)
  })
  const builtIn = absent.filter(({ path }) => path === flow.builtInAt)
  if (builtIn.length > 0) {
    const names = listed(builtIn.map(({ attribute }) => attribute))
    const message = `the built-in mapping reads attributes from ${flow.target} that no workflow provisions there, so what clients send of them is lost: ${names}; they provision ${listed(stored.names.values())}`
    issues.for(document).warning(builtIn[0]?.path ?? [], message)
  }
  for (const place of absent) {
    if (builtIn.includes(place)) continue
    const key = place.attribute.toLowerCase()
    const maps = gatewayMaps(gateway)
    const written = missing.find((one) => one.target === flow.target && one.place.attribute.toLowerCase() === key)
    const reason =
      written === undefined
        ? `no workflow provisions it there: they provision ${listed(stored.names.values())}`
        : `nothing produces it: ${written.document.at(written.place.path)} provisions it, while ${maps}`
    const available = [...stored.names.values(), ...flow.produces.map(({ attribute }) => attribute)]
    const message = `"${place.attribute}" is read from ${flow.target}, but ${reason}${hint(place.attribute, available)}`
    issues.for(document).warning(place.path, message)
  }
}

function hint(name: string, available: readonly string[]): string {
  const others = available.filter((other) => other.toLowerCase() !== name.toLowerCase())
  const nearest = nearestName(name, others)
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`
}

const isWorkflow = (draft: Draft, document: ConfigDocument): boolean =>
  [...draft.workflows.values()].some((workflow) => workflow.document === document)

const startsWith = (path: Path, prefix: Path): boolean => prefix.every((step, i) => path[i] === step)

/** Warns once, at the first URL, of all URLs whose callers have every right unless the directory has an entry of them. */
function checkTrustedPrograms(urls: readonly CallableUrl[], issues: Issues): void {
  const [first, ...others] = urls.filter(({ callable }) => callable.trustsPrograms && callable.workflows.length > 0)
  if (first === undefined) return
  const places = others.map(({ document, callable }) => document.at(callable.path))
  const also = places.length === 0 ? '' : ` (likewise at ${listed(places)})`
  const allows = 'callers without a directory entry, such as service accounts, may name any requestor, user and groups'
  const remedy = 'to narrow this, set subject, allowGroups or requireRequestorMatch, such as "subject: caller"'
  issues.for(first.document).warning(first.callable.path, `${allows}${also}; ${remedy}`)
}

/**
 * Warns of tasks that write everything a caller sends: users start workflows by a call with attributes of their own
 * choice, and with groups if the URL, or a task, lets them name any. Reports each task once, even if several URLs
 * lead to it.
 */
export function checkCallableWorkflows(draft: Draft, catalog: Catalog, issues: Issues): void {
  checkTrustedPrograms(draft.callables, issues)
  const reported = new Set<string>()
  for (const url of draft.callables) {
    if (!isForPeople(url, draft)) continue
    const { workflows, groups, path } = url.callable
    for (const workflow of workflows) {
      const walk = new FlowWalk(draft, catalog)
      walk.run({ workflow, gateway: undefined, anyGroup: groups })
      for (const { task, document, what } of walk.unbound()) {
        const key = JSON.stringify([document.at(task.path), what])
        if (reported.has(key)) continue
        reported.add(key)
        const way = `people can call the workflow "${workflow}" (${url.document.at(path)})`
        issues.for(document).warning(task.path, `${way}, and ${problemOf(what)}`)
      }
    }
  }
}

const problemOf = (what: UnboundWrite['what']): string =>
  what === 'code'
    ? 'the code of this task may set any groups and attributes from what they send; list the ones that the provision tasks after it may write in their "attributes" and "groups"'
    : `this task writes all ${what} that they choose; list the ones that it may write in "${what}"`

/** If the chain does not say who its callers are, callers who may act for themselves count as users. */
function isForPeople({ chain, callable }: CallableUrl, draft: Draft): boolean {
  const kinds = chain === undefined ? ['people' as const] : callersOf(chain, draft, new Set())
  const isOwn = ({ issuer }: { readonly issuer: string }): boolean =>
    draft.issuers.some(({ config: { mount } }) => URL.canParse(issuer) && new URL(issuer).pathname === mount)
  if (kinds.some((kind) => kind === 'people' || (typeof kind === 'object' && isOwn(kind)))) return true
  return callable.forThemselves && !kinds.includes('programs')
}

function callersOf(chain: string, draft: Draft, seen: Set<string>): CallerKind[] {
  if (seen.has(chain)) return []
  seen.add(chain)
  return (draft.chains.get(chain)?.config.mechanisms ?? []).flatMap(({ mechanism }) => [
    ...(mechanism.callers === undefined ? [] : [mechanism.callers]),
    ...mechanism.includes.flatMap((included) => callersOf(included, draft, seen)),
  ])
}
