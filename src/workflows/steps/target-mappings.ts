import type { TargetConfig } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import type { Scope } from '#kernel/scope.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { LookupHost } from '#sdk/target/target.ts'
import type { TaskHost, TaskTargets } from '#sdk/workflow/workflow-task.ts'

/** The `targetAttributes` of every target that has them, created once. */
export async function createTargetMappings(
  targets: ReadonlyMap<string, TargetConfig>,
  hostFor: (name: string, at: string) => LookupHost,
  scope: Scope,
): Promise<ReadonlyMap<string, Mapping>> {
  const mappings = new Map<string, Mapping>()
  await createEach(targets, async ([name, { mapping, at }]) => {
    if (mapping === undefined) return
    mappings.set(name, scope.own(await createAt(at, () => mapping.create(hostFor(name, at)))))
  })
  return mappings
}

/** A host for tasks, whose targets have their mappings. */
export function withMappings(host: TaskHost, mappings: ReadonlyMap<string, Mapping>): TaskHost {
  const targets: TaskTargets = {
    ...host.targets,
    mapping: (name) => mappings.get(name),
  }
  return { ...host, targets }
}
