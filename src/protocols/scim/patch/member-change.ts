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

/** How many members all filters together may be tried on. */
const maxTests = 2_000_000

/** `present` is consulted only where `needsPresentMembers` says so. All operations are on `members`. */
export function memberChange(operations: readonly PatchOperation[], present: readonly JsonObject[] = []): MemberChange {
  const add = new Set<string>()
  const remove = new Set<string>()
  let allTaken = false
  let tests = 0
  const take = (ids: Iterable<string>): void => {
    for (const id of ids) {
      add.delete(id)
      remove.add(id)
    }
  }
  const takeAll = (): void => {
    // Once is enough: whoever came back since stands in `add`.
    if (!allTaken) take(memberIds(present))
    allTaken = true
    take([...add])
  }
  for (const operation of operations) {
    const { filter, sub } = operation.target
    if (operation.op === 'remove') {
      if (operation.replaces === true && filter !== undefined) throw unchangeable()
      if (sub !== undefined) throw unchangeable()
      const named = operation.values === undefined ? filterValues(filter) : memberIds(operation.values)
      if (named !== undefined) take(named)
      else if (filter === undefined) takeAll()
      else {
        tests += present.length + add.size
        if (tests > maxTests)
          throw scimError(
            'invalidValue',
            'members: the filters are too many for a group of this size. Remove members by their ids.',
          )
        take(matchingIds(filter, present, add))
      }
      continue
    }
    if (filter !== undefined || sub !== undefined) {
      throw unchangeable()
    }
    const ids = memberIds(Array.isArray(operation.value) ? operation.value : [operation.value as JsonValue])
    if (operation.op === 'replace') takeAll()
    for (const id of ids) {
      remove.delete(id)
      add.add(id)
    }
  }
  return { add, remove }
}

const unchangeable = () =>
  scimError('mutability', 'members: a member cannot be changed. Remove it and add another, in two operations.')

/** The ids of member elements. Throws invalidValue when one has none or is not a user. */
export function memberIds(elements: readonly JsonValue[]): string[] {
  return elements.map((element) => {
    const value = isJsonObject(element) ? element['value'] : undefined
    if (typeof value !== 'string' || value === '')
      throw scimError('invalidValue', 'members: each member needs a value, the id of a user.')
    const type = isJsonObject(element) ? element['type'] : undefined
    if (typeof type === 'string' && type.toLowerCase() !== 'user') {
      throw scimError('invalidValue', 'Only users can be members.')
    }
    return value
  })
}

function matchingIds(filter: ScimFilter, present: readonly JsonObject[], added: ReadonlySet<string>): string[] {
  const candidates = [...present, ...Array.from(added, (value) => ({ value }))]
  return memberIds(candidates.filter((member) => evaluateFilter(filter, member)))
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
