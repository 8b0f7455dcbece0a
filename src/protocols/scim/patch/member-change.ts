import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { PatchOperation } from '#protocols/scim/patch/patch-operation.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

/**
 * What operations on `members` do, as sets, so that a change of one member costs the same in a group of any size.
 * Those in neither set stay as they are.
 */
export interface MemberChange {
  readonly add: ReadonlySet<string>
  readonly remove: ReadonlySet<string>
}

/** Whether the change can only be told by looking at the present members: everyone goes, or a filter is not by value. */
export function needsPresentMembers(operations: readonly PatchOperation[]): boolean {
  return operations.some(
    (operation) =>
      operation.op === 'replace' ||
      (operation.op === 'remove' &&
        operation.values === undefined &&
        filterValues(operation.target.filter) === undefined),
  )
}

/** `present` is consulted only where `needsPresentMembers` says so. All operations are on `members`. */
export function memberChange(operations: readonly PatchOperation[], present: readonly JsonObject[] = []): MemberChange {
  const add = new Set<string>()
  const remove = new Set<string>()
  const put = (id: string): void => {
    remove.delete(id)
    add.add(id)
  }
  const take = (id: string): void => {
    add.delete(id)
    remove.add(id)
  }
  for (const operation of operations) {
    const { filter, sub } = operation.target
    if (operation.op === 'remove') {
      if (sub !== undefined) throw scimError('mutability', `${sub.name} of a member cannot be removed.`)
      for (const id of removedIds(operation, present, add)) take(id)
      continue
    }
    if (filter !== undefined || sub !== undefined) {
      throw scimError('mutability', 'A member cannot be changed; remove it and add another.')
    }
    const ids = memberIds(Array.isArray(operation.value) ? operation.value : [operation.value as JsonValue])
    if (operation.op === 'replace') for (const id of [...memberIds(present), ...add]) take(id)
    for (const id of ids) put(id)
  }
  return { add, remove }
}

/** The ids of member elements. Throws invalidValue when one has none or is not a user. */
export function memberIds(elements: readonly JsonValue[]): string[] {
  return elements.map((element) => {
    const value = isJsonObject(element) ? element['value'] : undefined
    if (typeof value !== 'string' || value === '') throw scimError('invalidValue', 'Each member needs a value.')
    const type = isJsonObject(element) ? element['type'] : undefined
    if (typeof type === 'string' && type.toLowerCase() !== 'user') {
      throw scimError('invalidValue', 'Only users can be members.')
    }
    return value
  })
}

function removedIds(
  operation: PatchOperation & { op: 'remove' },
  present: readonly JsonObject[],
  added: ReadonlySet<string>,
): readonly string[] {
  const { filter } = operation.target
  if (operation.values !== undefined) return memberIds(operation.values)
  const named = filterValues(filter)
  if (named !== undefined) return named
  const candidates = [...present, ...Array.from(added, (value) => ({ value }))]
  return memberIds(filter === undefined ? candidates : candidates.filter((member) => evaluateFilter(filter, member)))
}

/** The ids in `value eq "a"` or several joined by `or`; undefined for any other filter. */
function filterValues(filter: ScimFilter | undefined): readonly string[] | undefined {
  if (filter === undefined) return undefined
  const ids: string[] = []
  for (const part of filter.kind === 'or' ? filter.filters : [filter]) {
    if (part.kind !== 'compare' || part.operator !== 'eq' || part.path.attribute.name !== 'value') return undefined
    if (typeof part.value !== 'string') return undefined
    ids.push(part.value)
  }
  return ids
}
