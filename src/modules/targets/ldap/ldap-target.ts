import { LdapServer } from '#protocols/ldap/ldap-server.ts'
import { readServerSchema } from '#protocols/ldap/server-schema.ts'
import { ldapAuthorities, ldapSystem } from '#sdk/ldap-parameters.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, StorableAttributes } from '#sdk/target.ts'
import { LdapAccounts } from './ldap-accounts.ts'
import type { LdapLayout, LdapTargetConfig } from './ldap-config.ts'
import { LdapGroups } from './ldap-groups.ts'
import { lookupsOf } from './ldap-lookups.ts'
import { LdapMemberships } from './ldap-memberships.ts'
import { withNames } from './ldap-names.ts'
import { LdapNesting } from './ldap-nesting.ts'
import { LdapTree } from './ldap-tree.ts'
import { LongAnswers } from './long-answers.ts'

export type LdapTarget = LookupTarget & GroupTarget & PasswordTarget

/** Connects when it is first asked. Throws when the certificate authorities cannot be read. */
export function openLdapTarget({ connection, layout, names }: LdapTargetConfig, name: string): LdapTarget {
  const server = new LdapServer({ ...connection, ca: ldapAuthorities(connection), name: `target "${name}"` })
  const tree = new LdapTree(server, layout)
  const memberships = new LdapMemberships(tree)
  const accounts = new LdapAccounts(tree, memberships)
  const groups = new LdapGroups(tree, memberships)
  const nesting = new LdapNesting(tree, memberships)
  const answers = new LongAnswers(layout.listMemoryMillis)
  /** What was remembered of before may be otherwise now, also where the change failed. */
  const changing = <T>(change: Promise<T>): Promise<T> => change.finally(() => answers.forget())
  const target: LdapTarget = {
    ...lookupsOf(tree, answers),
    renamesUsers: layout.users.dn.isOwn(layout.users.login) && layout.users.dn.isOwn('userID'),
    keepsVersions: layout.version !== undefined,
    findUser: (userID, attributes) => accounts.find(userID, attributes),
    createUser: (user, attributes, request, options) =>
      changing(accounts.create(user, attributes, request, options?.mustBeNew)),
    syncUser: (user, options, request) => changing(accounts.sync(user, options, request)),
    deleteUser: (user, request, options) => changing(accounts.delete(user, request, options?.expectedVersion)),
    setUserPassword: accounts.setPassword,
    storedAt: async (userID) => {
      const entry = await tree.userEntry(userID, [])
      return entry && { system: ldapSystem(connection), name: entry.dn }
    },
    storable: storableIn(server, layout),
    findGroup: (group) => groups.find(group),
    createGroup: (group, attributes, request) => changing(groups.create(group, attributes, request)),
    updateGroup: (group, change, request) => changing(groups.update(group, change, request)),
    deleteGroup: (group, request, options) => changing(groups.delete(group, request, options?.expectedVersion)),
    // Groups that hold logins have no place for the name of a group.
    ...(layout.groups.membersAreLogins
      ? {}
      : {
          containingGroups: (ids) => nesting.containing(ids),
          changeMemberGroups: (group, change, request) => changing(nesting.change(group, change, request)),
        }),
    close: () => {
      answers.close()
      server.close()
    },
  }
  return withNames(target, names)
}

/** How long a server's schema is remembered. */
const schemaMillis = 10 * 60 * 1000

/** What the classes of new entries allow. Where the server doesn't show its schema, it decides about each write. */
function storableIn(server: LdapServer, { users, groups }: LdapLayout): () => Promise<StorableAttributes> {
  let known: { readonly storable: StorableAttributes; readonly until: number } | undefined
  const without = (names: ReadonlySet<string> | undefined, ...own: readonly string[]): ReadonlySet<string> | 'any' => {
    if (names === undefined) return 'any'
    const excluded = new Set(['objectclass', ...own.map((name) => name.toLowerCase())])
    return new Set([...names].filter((name) => !excluded.has(name)))
  }
  return async () => {
    if (known !== undefined && known.until > performance.now()) return known.storable
    const schema = await readServerSchema(server)
    const storable = {
      users: without(schema?.allowed(users.objectClasses)),
      groups: without(schema?.allowed(groups.objectClasses), groups.member),
    }
    known = { storable, until: performance.now() + schemaMillis }
    return storable
  }
}
