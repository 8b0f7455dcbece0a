/** What a plug-in must have to be a target at all. */
export const requiredFunctions = ['findUser', 'createUser', 'syncUser', 'deleteUser'] as const

/** All of them make the target one that can be asked. */
export const lookupFunctions = [
  'lookupUserByLogin',
  'lookupUserById',
  'searchUsers',
  'lookupGroupByName',
  'lookupGroupById',
  'searchGroups',
] as const

/** Constant facts, asked once. */
export const factFunctions = ['isGroupMembersUniqueIds', 'isUniqueIdTremoloId', 'isGroupIdUniqueId'] as const

const groupFunctions = ['addGroup', 'deleteGroup'] as const

/** What a target may have beside; older code has none of them, so nothing ever asks for them. */
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
  /** Undefined: as the functions have it. */
  readonly lookups: boolean | undefined
  readonly groups: boolean | undefined
}

export interface Capabilities {
  readonly passwords: boolean
  readonly lookups: boolean
  readonly groups: boolean
}

/** What the target can do. Throws, naming them, when functions are missing. */
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
