import { ldapAuthorities, ldapSystem } from '#modules/shared/ldap/ldap-parameters.ts'
import { LdapServer } from '#protocols/ldap/ldap-server.ts'
import { readServerSchema } from '#protocols/ldap/server-schema.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, StorableAttributes } from '#sdk/target/target.ts'
import type { LdapLayout, LdapTargetConfig } from './ldap-config.ts'
import { ldapGroups } from './ldap-groups.ts'
import { LongAnswers, lookupsOf } from './ldap-lookups.ts'
import { LdapMemberships, LdapNesting } from './ldap-memberships.ts'
import { withNames } from './ldap-names.ts'
import { LdapTree } from './ldap-tree.ts'
import { ldapUsers } from './ldap-users.ts'

export type LdapTarget = LookupTarget & GroupTarget & PasswordTarget

/** Connects on the first call. Throws when the certificate authorities cannot be read. */
export function openLdapTarget({ connection, layout, names }: LdapTargetConfig, name: string): LdapTarget {
  const server = new LdapServer({ ...connection, ca: ldapAuthorities(connection), name: `target "${name}"` })
  const tree = new LdapTree(server, layout)
  const memberships = new LdapMemberships(tree)
  const nesting = new LdapNesting(tree, memberships)
  const answers = new LongAnswers(layout.listMemoryMillis)
  /** Remembered answers may be outdated by any change, also by one that failed. */
  const forget = () => answers.forget()
  const target: LdapTarget = {
    ...lookupsOf(tree, answers),
    renamesUsers: layout.users.dn.isOwn(layout.users.login) && layout.users.dn.isOwn('userID'),
    keepsVersions: layout.version !== undefined,
    ...ldapUsers(tree, memberships, forget),
    ...ldapGroups(tree, memberships, forget),
    findUser: async (userID, attributes) => {
      const entry = await tree.userEntry(userID, attributes)
      return entry && tree.toUser(entry, attributes)
    },
    storedAt: async (userID) => {
      const entry = await tree.userEntry(userID, [])
      return entry && { system: ldapSystem(connection), name: entry.dn }
    },
    storable: storableIn(server, layout),
    // Groups whose members are logins can't contain groups.
    ...(layout.groups.membersAreLogins
      ? {}
      : {
          containingGroups: (ids) => nesting.containing(ids),
          changeMemberGroups: (group, change, request) => nesting.change(group, change, request).finally(forget),
        }),
    close: () => {
      answers.close()
      server.close()
    },
  }
  return withNames(target, names)
}

/** How long a server's schema is cached. */
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
