import type { ConfigDocument } from '#config/config-document.ts'
import type { Draft, Gateway } from '#config/draft.ts'
import { FlowWalk, gatewayMaps, isPseudo, listed, type Missing, type Start } from '#config/flow-walk.ts'
import type { Reference } from '#config/references.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { nearestName } from '#kernel/suggest.ts'
import type { Catalog } from '#sdk/module/catalog.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'

/**
 * Follows attributes from each gateway through its workflows to the targets and back, and warns where one is used that
 * nothing produces. It warns only when no way to the place produces the attribute, and never behind something whose
 * attributes cannot be told beforehand.
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
    const problems = flow.check?.((workflow) => workflowWrites(source, workflow)) ?? []
    for (const { path, message } of problems) issues.for(document).warning(path, message)
  }
}

/** Gateways start workflows with what they map; whatever else starts one may bring any attribute. */
function starts(draft: Draft, references: readonly Reference[]): Start[] {
  const fromGateways = draft.gateways.flatMap((gateway) =>
    gateway.flow.workflows.map((workflow) => ({ workflow, gateway })),
  )
  const byGateway = new Set(fromGateways.map(({ workflow }) => workflow))
  const called = new Set<string>()
  const elsewhere = new Set<string>()
  for (const { kind, name, path, document } of references) {
    if (kind !== 'workflow') continue
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
  const held = flow.target === undefined ? undefined : walk.held(flow.target)
  if (flow.target === undefined || held === undefined || held.opaque) return
  const given = new Set(flow.given.map((name) => name.toLowerCase()))
  const absent = flow.reads.filter(({ attribute }) => {
    const key = attribute.toLowerCase()
    return !given.has(key) && !held.names.has(key) && !isPseudo(key)
  })
  const builtIn = absent.filter(({ path }) => path === flow.builtInAt)
  if (builtIn.length > 0) {
    const names = listed(builtIn.map(({ attribute }) => attribute))
    const message = `the built-in mapping reads attributes from ${flow.target} that no workflow provisions there, so what clients send of them is lost: ${names}; they provision ${listed(held.names.values())}`
    issues.for(document).warning(builtIn[0]?.path ?? [], message)
  }
  for (const place of absent) {
    if (builtIn.includes(place)) continue
    const key = place.attribute.toLowerCase()
    const maps = gatewayMaps(gateway)
    const written = missing.find((one) => one.target === flow.target && one.place.attribute.toLowerCase() === key)
    const reason =
      written === undefined
        ? `no workflow provisions it there: they provision ${listed(held.names.values())}`
        : `nothing produces it: ${written.document.at(written.place.path)} provisions it, while ${maps}`
    const available = [...held.names.values(), ...flow.produces.map(({ attribute }) => attribute)]
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
