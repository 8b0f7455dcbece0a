import { type LegacyParameter, type LegacySignatures, parameter, value } from '#sdk/legacy-script/legacy-signatures.ts'

const one: readonly LegacyParameter[] = [value(0)]

/** How the predecessor calls the functions of a target; the later ones as they would have been. */
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
