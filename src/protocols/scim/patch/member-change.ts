import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { PatchOperation } from '#protocols/scim/patch/parse-patch.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'

export type MemberType = 'User' | 'Group'

/** A member as a client names it. */
export interface MemberReference {
  readonly value: string
  /** From `type` or `$ref`; undefined if the client sent neither. */
  readonly type: MemberType | undefined
}

/**
 * The effect of operations on `members`, as sets, so that a change of one member costs the same in a group of any size.
 * Members in neither set stay.
 */
export interface MemberChange<M> {
  readonly add: ReadonlySet<M>
  readonly remove: ReadonlySet<M>
}

/** Whether the change depends on the current members: all are removed, or a filter is not by value. */
export function needsPresentMembers(operations: readonly PatchOperation[]): boolean {
  return operations.some((operation) => {
    const { filter, sub } = operation.target
    // A change of a single member is refused, whether the member is present or not.
    if (operation.op === 'replace') return filter === undefined && sub === undefined
    return operation.op === 'remove' && operation.values === undefined && filterValues(filter) === undefined
  })
}

/** Every member that the operations name. Throws invalidValue for an invalid reference. */
export function memberReferences(operations: readonly PatchOperation[]): MemberReference[] {
  return operations.flatMap((operation) => {
    if (operation.op !== 'remove') return elementsOf(operation).map(readReference)
    return operation.values === undefined
      ? (filterValues(operation.target.filter) ?? [])
      : operation.values.map(readReference)
  })
}

/** The most members that all filters together may be evaluated on. */
const maxTests = 2_000_000

/**
 * All operations are on `members`. `present` is used only if `needsPresentMembers` is true. `resolve` returns the
 * same object for every reference to the same member.
 */
export function memberChange<M>(
  operations: readonly PatchOperation[],
  present: readonly JsonObject[],
  resolve: (reference: MemberReference) => M,
): MemberChange<M> {
  /** As they were sent, for filters. */
  const add = new Map<M, JsonObject>()
  const remove = new Set<M>()
  let allTaken = false
  let tests = 0
  const take = (references: Iterable<MemberReference>): void => {
    for (const reference of references) {
      const member = resolve(reference)
      add.delete(member)
      remove.add(member)
    }
  }
  const takeAll = (): void => {
    // Once is enough: members that were added later are in `add`.
    if (!allTaken) take(present.map(readReference))
    allTaken = true
    for (const member of add.keys()) remove.add(member)
    add.clear()
  }
  for (const operation of operations) {
    const { filter, sub } = operation.target
    if (operation.op === 'remove') {
      if (operation.replaces === true && filter !== undefined) throw unchangeable()
      if (sub !== undefined) throw unchangeable()
      const named = operation.values === undefined ? filterValues(filter) : operation.values.map(readReference)
      if (named !== undefined) take(named)
      else if (filter === undefined) takeAll()
      else {
        tests += present.length + add.size
        if (tests > maxTests)
          throw scimError(
            'invalidValue',
            'members: the filters are too many for a group of this size. Remove members by their ids.',
          )
        take([...present, ...add.values()].filter((member) => evaluateFilter(filter, member)).map(readReference))
      }
      continue
    }
    if (filter !== undefined || sub !== undefined) {
      throw unchangeable()
    }
    const elements = elementsOf(operation).map((element) => ({ element, reference: readReference(element) }))
    if (operation.op === 'replace') takeAll()
    for (const { element, reference } of elements) {
      const member = resolve(reference)
      remove.delete(member)
      add.set(member, isJsonObject(element) ? element : {})
    }
  }
  return { add: new Set(add.keys()), remove }
}

const unchangeable = () =>
  scimError('mutability', 'members: a member cannot be changed. Remove it and add another, in two operations.')

const elementsOf = ({ value }: { readonly value: JsonValue }): readonly JsonValue[] =>
  Array.isArray(value) ? value : [value]

/** Throws invalidValue if the element has no value, or if its type and address contradict each other. */
function readReference(element: JsonValue): MemberReference {
  const { value, type, $ref } = isJsonObject(element) ? element : {}
  if (typeof value !== 'string' || value === '')
    throw scimError('invalidValue', 'members: each member needs a value, the id of a user or group.')
  const said = typeof type === 'string' && type !== '' ? memberType(type, value) : undefined
  const referred = typeof $ref === 'string' ? readAddress($ref) : undefined
  if (said !== undefined && referred !== undefined && said !== referred.type) {
    throw scimError(
      'invalidValue',
      `members: ${quoted(value)} has type ${said}, but its $ref names a ${referred.type}. Send one of them, or the same in both.`,
    )
  }
  return { value, type: said ?? referred?.type }
}

const memberTypes = ['User', 'Group'] as const

function memberType(type: string, value: string): MemberType {
  const known = memberTypes.find((name) => name.toLowerCase() === type.toLowerCase())
  if (known !== undefined) return known
  throw scimError('invalidValue', `members: ${quoted(value)} has type ${quoted(type)}. Send User or Group.`)
}

/** The type in an address such as `../Groups/5` or `https://…/Users/7`; undefined for any other. */
function readAddress(address: string): { readonly type: MemberType } | undefined {
  const kind = /(?:^|\/)(User|Group)s\/[^/?#]+\/?(?:[?#].*)?$/i.exec(address)?.[1]?.toLowerCase()
  return kind === undefined ? undefined : { type: kind === 'user' ? 'User' : 'Group' }
}

/**
 * The members in `value eq "a"` or `value eq "a" and type eq "User"`, or in several of these joined by `or`; undefined for
 * any other filter.
 */
function filterValues(filter: ScimFilter | undefined): readonly MemberReference[] | undefined {
  if (filter === undefined) return undefined
  const named: MemberReference[] = []
  for (const part of filter.kind === 'or' ? filter.filters : [filter]) {
    const parts = part.kind === 'and' ? part.filters : [part]
    const value = equalTo(parts, 'value')
    const type = equalTo(parts, 'type')
    const known = memberTypes.find((name) => name.toLowerCase() === type?.toLowerCase())
    if (value === undefined || (type === undefined) !== (known === undefined)) return undefined
    if (parts.length > (type === undefined ? 1 : 2)) return undefined
    named.push({ value, type: known })
  }
  return named
}

function equalTo(filters: readonly ScimFilter[], name: string): string | undefined {
  for (const part of filters) {
    const isEqual = part.kind === 'compare' && part.operator === 'eq' && part.path.attribute.name === name
    if (isEqual && typeof part.value === 'string') return part.value
  }
  return undefined
}
