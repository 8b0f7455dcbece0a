import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { Params } from '#sdk/params.ts'
import { hasPlace, isWritten, type Operation, type Operations } from './operation.ts'
import { kindOf, type OperationName } from './operations.ts'
import type { Given } from './read-operations.ts'
import type { Capabilities } from './webhook-config.ts'

/** Places that are known only where the answers tell them. */
const toldBy = {
  id: 'user.id',
  groupId: 'group.id',
} as const

/** Reports requests that lack another one or a path, and tells what all of them together can do. */
export function checkOperations(operations: Operations, given: Given, params: Params, issues: Issues): Capabilities {
  for (const operation of Object.values(operations)) checkPlaces(operation, operations, given, params, issues)
  return {
    lookups: checkLookups(operations, given, params, issues),
    groups: checkGroups(operations, given, params, issues),
    memberships: checkMemberships(operations, given, params, issues),
    renames: renames(operations),
    versions: keepsVersions(operations),
  }
}

function checkPlaces(operation: Operation, operations: Operations, given: Given, params: Params, issues: Issues): void {
  const { name, body } = operation
  const kind = kindOf(name)
  for (const [place, parameter] of Object.entries(toldBy)) {
    if (hasPlace(operation, place) && given[parameter as 'user.id'] === undefined) {
      issues.error(params.pathOf(name), `"${name}" uses {${place}}, so "${parameter}" is required`)
    }
  }
  const versionPath = name.includes('Group') ? 'group.version' : 'user.version'
  if (hasPlace(operation, 'version') && given[versionPath] === undefined) {
    issues.error(params.pathOf(name), `"${name}" uses {version}, so "${versionPath}" is required`)
  }
  const namesGroup = hasPlace(operation, 'group') || hasPlace(operation, 'groupId')
  if (namesGroup && name !== 'createGroup' && name !== 'addMember' && name !== 'removeMember') {
    if (given['group.name'] === undefined) issues.error(params.pathOf(name), `"${name}" needs "group.name"`)
  }
  if (hasPlace(operation, 'groupId') && name.endsWith('Member') && operations.findGroup === undefined) {
    issues.error(params.pathOf(name), `"${name}" uses {groupId}, so "findGroup" is required to find it`)
  }
  const { next, total, request } = operation
  const { places } = request
  const pages = ['offset', 'page', 'cursor'].filter((place) => places.includes(place))
  if (pages.length > 1) issues.error(params.pathOf(name), `"${name}": pages go by one of {${pages.join('}, {')}}`)
  if (places.includes('cursor') && next === undefined) {
    issues.error(params.pathOf(name), `"${name}" uses {cursor}, so "${name}.next" is required`)
  }
  if (next !== undefined && !places.includes('cursor')) {
    issues.error(params.pathOf(`${name}.next`), `"${name}.next" is of no use without {cursor} in "${name}"`)
  }
  if (total !== undefined && pages.length === 0) {
    issues.error(params.pathOf(`${name}.total`), `"${name}.total" is of no use without pages in "${name}"`)
  }
  if (kind.attributes === undefined) return
  const attributes = [...given[`${kind.attributes}.attribute.<name>`].keys()]
  const known = new Set(attributes.map((attribute) => attribute.toLowerCase()))
  const own: readonly string[] = kind.attributes === 'user' ? [...kind.places, 'groups'] : kind.places
  for (const place of new Set(body?.places.map((each) => each.name) ?? [])) {
    if (own.includes(place) || known.has(place.toLowerCase())) continue
    issues.error(
      params.pathOf(`${name}.body`),
      `"${name}.body" writes {${place}}${suggestion(place, [...own, ...attributes])}, so "${kind.attributes}.attribute.${place}" is required: what is written must be read as well`,
    )
  }
}

function checkLookups(operations: Operations, given: Given, params: Params, issues: Issues): boolean {
  const optional: OperationName[] = ['searchUsers', 'searchGroups']
  const byId: OperationName[] = ['findUserById', 'findGroupById']
  const [first] = [...optional, ...byId].filter((name) => operations[name] !== undefined)
  if (first === undefined) return false
  const needed: OperationName[] = [
    ...optional,
    'findGroup',
    ...(given['user.id'] === undefined ? [] : (['findUserById'] as const)),
    ...(given['group.id'] === undefined ? [] : (['findGroupById'] as const)),
  ]
  const missing = needed.filter((name) => operations[name] === undefined && !isWritten(params, name))
  for (const name of missing) {
    issues.error(params.pathOf(first), `look-ups need all of their requests: "${name}" is missing beside "${first}"`)
  }
  if (given['group.name'] === undefined) issues.error(params.pathOf(first), 'look-ups need "group.name"')
  if (operations.findUserById !== undefined && given['user.id'] === undefined) {
    issues.error(params.pathOf('findUserById'), '"findUserById" is of no use without "user.id"')
  }
  if (operations.findGroupById !== undefined && given['group.id'] === undefined) {
    issues.error(params.pathOf('findGroupById'), '"findGroupById" is of no use without "group.id"')
  }
  return missing.length === 0
}

function checkGroups(operations: Operations, given: Given, params: Params, issues: Issues): boolean {
  const names: OperationName[] = ['createGroup', 'deleteGroup', 'updateGroup']
  const [first] = names.filter((name) => operations[name] !== undefined)
  if (first === undefined) return false
  const missing = (['createGroup', 'deleteGroup', 'findGroup'] as const).filter(
    (name) => operations[name] === undefined,
  )
  for (const name of missing.filter((each) => !isWritten(params, each))) {
    issues.error(params.pathOf(first), `groups need "createGroup", "deleteGroup" and "findGroup": "${name}" is missing`)
  }
  if (given['group.name'] === undefined) issues.error(params.pathOf(first), `"${first}" needs "group.name"`)
  return missing.length === 0
}

function checkMemberships(
  { createUser, updateUser, addMember, removeMember, userGroups }: Operations,
  given: Given,
  params: Params,
  issues: Issues,
): Capabilities['memberships'] {
  const inBodies = [createUser, updateUser].filter((operation) => operation && hasPlace(operation, 'groups'))
  const calls = [addMember, removeMember].filter((operation) => operation !== undefined)
  if (inBodies.length === 0 && calls.length === 0) return 'none'
  const at = params.pathOf(inBodies[0] === undefined ? (calls[0]?.name ?? 'addMember') : `${inBodies[0].name}.body`)
  if (inBodies.length === 1)
    issues.error(at, 'memberships that go with the user need {groups*} in both createUser.body and updateUser.body')
  if (calls.length === 1) issues.error(at, '"addMember" and "removeMember" are required together')
  if (inBodies.length > 0 && calls.length > 0) {
    issues.error(at, 'memberships go with the user ({groups*}) or by "addMember" and "removeMember", not both')
  }
  if (given['user.groups'] === undefined && userGroups === undefined) {
    issues.error(
      at,
      'memberships can be changed only where they can be read: "user.groups" or "userGroups" is required',
    )
  }
  return inBodies.length > 0 ? 'body' : 'calls'
}

/** A user that is addressed by its id can be given another login where the body says it. */
function renames({ updateUser }: Operations): boolean {
  if (updateUser === undefined || updateUser.request.places.includes('userID')) return false
  return updateUser.body?.places.some(({ name }) => name === 'userID') ?? false
}

/** Every change that there is must be bound to the version. */
function keepsVersions({ updateUser, deleteUser, createGroup, updateGroup, deleteGroup }: Operations): boolean {
  const ofGroups = createGroup === undefined ? [] : [updateGroup, deleteGroup]
  return [updateUser, deleteUser, ...ofGroups].every((operation) => operation && hasPlace(operation, 'version'))
}
