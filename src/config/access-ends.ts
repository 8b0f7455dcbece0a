import type { Draft } from '#config/draft.ts'
import type { Reference } from '#config/references.ts'
import type { Issues } from '#kernel/issues.ts'
import { accessEndKey } from '#sdk/workflow/access-end.ts'

/** Warns where people choose an end of access that nothing keeps to, and where an end is read that nobody can choose. */
export function checkAccessEnds({ workflows }: Draft, references: readonly Reference[], issues: Issues): void {
  const calls = callsOf(workflows, references)
  const offered = new Set<string>()
  for (const [name, { config, document }] of workflows) {
    if (config.accessEnds === undefined) continue
    const reached = reachedFrom(name, calls)
    for (const one of reached) offered.add(one)
    const isRead = [...reached].some((one) => workflows.get(one)?.config.parameters.includes(accessEndKey))
    if (isRead) continue
    const message = `people choose when the access ends, but no task reads it: give one "expiresAt: $${accessEndKey}$", or name ${accessEndKey} among the parameters`
    issues.for(document).warning(['spec', 'accessEnds'], message)
  }
  for (const [name, { document, readsEndAt, declaresEnd }] of workflows) {
    if (readsEndAt === undefined || declaresEnd || offered.has(name)) continue
    const message = `$${accessEndKey}$ is empty unless a caller passes it: neither this workflow nor one that calls it has accessEnds`
    issues.for(document).warning(readsEndAt, message)
  }
}

/** By workflow, those that it calls or starts, as far as they are named. */
function callsOf(workflows: Draft['workflows'], references: readonly Reference[]): Map<string, string[]> {
  const names = new Map(Array.from(workflows, ([name, { document }]) => [document, name]))
  const calls = new Map<string, string[]>()
  for (const { kind, name, document } of references) {
    const caller = kind === 'workflow' ? names.get(document) : undefined
    if (caller !== undefined) calls.set(caller, [...(calls.get(caller) ?? []), name])
  }
  return calls
}

/** With itself. */
function reachedFrom(start: string, calls: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set([start])
  for (const name of reached) for (const called of calls.get(name) ?? []) reached.add(called)
  return reached
}
