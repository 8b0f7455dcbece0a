import { PaperGroups } from '#engine/foresight/paper-groups.ts'
import { type PaperParts, PaperUsers } from '#engine/foresight/paper-users.ts'
import { hasGroups, hasPasswords, nestsGroups, type Target } from '#sdk/target/target.ts'

/**
 * A target as it would be after what was written to it: reads come from the real one, writes are noted and change this
 * one alone. It has the abilities of the real one, so that tasks behave as they would.
 */
export function paperTarget(target: Target, parts: PaperParts): Target {
  const users = new PaperUsers(target, parts)
  const groups = hasGroups(target) ? new PaperGroups(target, parts) : undefined
  return {
    renamesUsers: target.renamesUsers ?? false,
    keepsVersions: target.keepsVersions ?? false,
    findUser: (userID, attributes, request) => users.findUser(userID, attributes, request),
    createUser: (user, attributes, request) => users.createUser(user, attributes, request),
    syncUser: (user, options, request) => users.syncUser(user, options, request),
    deleteUser: (user, request) => users.deleteUser(user, request),
    ...(hasPasswords(target) && { setUserPassword: users.setUserPassword.bind(users) }),
    ...(groups && {
      findGroup: groups.findGroup.bind(groups),
      createGroup: groups.createGroup.bind(groups),
      updateGroup: groups.updateGroup.bind(groups),
      deleteGroup: groups.deleteGroup.bind(groups),
      ...(nestsGroups(target) && { changeMemberGroups: groups.changeMemberGroups.bind(groups) }),
    }),
  }
}
