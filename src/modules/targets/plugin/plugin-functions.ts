import { type LegacyParameter, type LegacySignatures, parameter, value } from '#legacy-script/legacy-signatures.ts'

/** Every plug-in target needs these. */
const requiredFunctions = ['findUser', 'createUser', 'syncUser', 'deleteUser'] as const

/** A target with all of these has look-ups. */
const lookupFunctions = [
  'lookupUserByLogin',
  'lookupUserById',
  'searchUsers',
  'lookupGroupByName',
  'lookupGroupById',
  'searchGroups',
] as const

/** Constant facts, read once. */
const factFunctions = ['isGroupMembersUniqueIds', 'isUniqueIdTremoloId', 'isGroupIdUniqueId'] as const

const groupFunctions = ['addGroup', 'deleteGroup'] as const

/** Optional functions that OpenUnison does not know, so `requireAllFunctions` does not require them. */
const laterFunctions = ['renameUser', 'updateGroup', 'keepsVersions', 'storableAttributes'] as const

export const pluginFunctions: readonly string[] = [
  'init',
  'shutdown',
  'setUserPassword',
  ...requiredFunctions,
  ...lookupFunctions,
  ...factFunctions,
  ...groupFunctions,
  'isGroupExists',
  ...laterFunctions,
]

export interface Demands {
  readonly requireAllFunctions: boolean
  /** Undefined: used where the functions exist. */
  readonly lookups: boolean | undefined
  readonly groups: boolean | undefined
}

export interface Capabilities {
  readonly passwords: boolean
  readonly lookups: boolean
  readonly groups: boolean
}

/** What the target can do. Throws an Error that names the missing functions. */
export function capabilitiesOf(has: (name: string) => boolean, demands: Demands): Capabilities {
  const missing = (names: readonly string[]) => names.filter((name) => !has(name))
  const required = demands.requireAllFunctions
    ? ['init', 'shutdown', 'setUserPassword', ...requiredFunctions, ...lookupFunctions, ...factFunctions]
    : requiredFunctions
  refuse(missing(required), 'is required')

  const lookups = demands.lookups ?? lookupFunctions.some(has)
  if (lookups) {
    refuse(missing(lookupFunctions), 'is required for look-ups (enableUserLookups: "false" does without them)')
  }

  const groups = demands.groups ?? groupFunctions.every(has)
  if (groups) {
    refuse(missing(groupFunctions), 'is required for enableCreateGroups')
    if (!has('lookupGroupByName') && !has('isGroupExists')) refuse(['isGroupExists'], 'is required beside addGroup')
  }
  return { passwords: has('setUserPassword'), lookups, groups }
}

function refuse(missing: readonly string[], why: string): void {
  if (missing.length > 0) throw new Error(`the plug-in's code has no function ${missing.join(', ')}, which ${why}`)
}

const one: readonly LegacyParameter[] = [value(0)]

/** How OpenUnison calls the functions of a target. Later functions follow the same style. */
export const legacySignatures: LegacySignatures = {
  init: [parameter('attributes', 0), parameter('manager'), value(1)],
  shutdown: [],
  findUser: [value(0), parameter('set', 1), parameter('request', 2)],
  createUser: [parameter('user', 0), parameter('set', 1), parameter('request', 2)],
  syncUser: [parameter('user', 0), value(1), parameter('set', 2), parameter('request', 3)],
  deleteUser: [parameter('user', 0), parameter('request', 1)],
  setUserPassword: [parameter('user', 0), parameter('request', 1)],
  renameUser: [value(0), value(1), parameter('request', 2)],
  lookupUserByLogin: one,
  lookupUserById: one,
  searchUsers: one,
  lookupGroupByName: one,
  lookupGroupById: one,
  searchGroups: one,
  isGroupMembersUniqueIds: [],
  isUniqueIdTremoloId: [],
  isGroupIdUniqueId: [],
  keepsVersions: [],
  addGroup: [value(0), parameter('textMap', 1), parameter('requestor', 2), parameter('request', 2)],
  updateGroup: [value(0), value(1), parameter('textMap', 2), parameter('request', 3)],
  deleteGroup: [value(0), parameter('requestor', 1), parameter('request', 1)],
  isGroupExists: [value(0), parameter('requestor'), parameter('request')],
}
