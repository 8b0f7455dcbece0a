import { Attributes } from '#identity/attributes.ts'
import { entryChange, groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { auditedCall } from '#modules/shared/tasks/audited-call.ts'
import type { CreateOptions, GroupChange, GroupTarget, TargetChange, TargetRequest } from '#sdk/target/target.ts'

/** Attributes by name. */
type Values = Readonly<Record<string, readonly string[]>>

export const createGroup = (
  groups: GroupTarget,
  name: string,
  attributes: Values,
  request: TargetRequest,
  options: CreateOptions = {},
) =>
  audited(
    groups,
    name,
    request,
    (audit) => groups.createGroup(name, attributes, audit, options),
    (found) => (found === undefined ? newGroupChanges(name, Attributes.from(attributes)) : []),
  )

export const updateGroup = (groups: GroupTarget, name: string, wanted: GroupChange, request: TargetRequest) =>
  audited(
    groups,
    name,
    request,
    (audit) => groups.updateGroup(name, wanted, audit),
    (found) =>
      found === undefined
        ? []
        : groupChanges(found, wanted.newName ?? found.name, Object.entries(wanted.attributes ?? {})),
  )

export const deleteGroup = (
  groups: GroupTarget,
  name: string,
  options: { readonly expectedVersion?: string },
  request: TargetRequest,
) =>
  audited(
    groups,
    name,
    request,
    (audit) => groups.deleteGroup(name, audit, options),
    (found) => (found === undefined ? [] : [entryChange('entry', 'delete', 'name', name)]),
  )

/**
 * Reads and records the planned change first, unless the target commits its changes with their audit anyway. If there
 * is nothing to change, the target detects it and reports it itself.
 */
async function audited(
  groups: GroupTarget,
  name: string,
  request: TargetRequest,
  call: (request: TargetRequest) => Promise<void>,
  expected: (found: Group | undefined) => readonly TargetChange[],
): Promise<void> {
  if (request.intend === undefined) return await call(request)
  const changes = expected(await groups.findGroup(name))
  const renamed = changes.find(({ subject, action }) => subject === 'entry' && action === 'replace')
  const owned = changes.map((one) => (one.subject === 'attribute' ? { ...one, group: renamed?.value ?? name } : one))
  if (owned.length === 0) return await call(request)
  await auditedCall(request, () => owned, call)
}
