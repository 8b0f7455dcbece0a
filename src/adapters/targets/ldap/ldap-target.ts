import {
  type GroupStore,
  type GroupWrite,
  reconcileGroups,
  type StoredGroup,
} from '#adapters/targets/shared/group-reconciler.ts'
import { report } from '#adapters/targets/shared/user-reconciler.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import { type LdapChange, LdapServer, type WriteOptions } from '#protocols/ldap/ldap-server.ts'
import type { ServerSchema } from '#protocols/ldap/server-schema.ts'
import { loadAuthority } from '#sdk/module/authority.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, StorableAttributes, TargetChange } from '#sdk/target/target.ts'
import type { LdapTargetConfig } from './ldap-config.ts'
import { LongAnswers, lookupsOf } from './ldap-lookups.ts'
import { LdapMemberships, LdapNesting } from './ldap-memberships.ts'
import { withNames } from './ldap-names.ts'
import { ldapSystem } from './ldap-parameters.ts'
import {
  isSameName,
  LdapTree,
  nameFailure,
  newEntry,
  type ReadEntry,
  renameEntry,
  touch,
  wireValues,
} from './ldap-tree.ts'
import { ldapUsers, retryingRaces } from './ldap-users.ts'

export type LdapTarget = LookupTarget & GroupTarget & PasswordTarget

/** Connects on the first call. Rejects if the certificate authority can't be read. */
export async function openLdapTarget(config: LdapTargetConfig, name: string): Promise<LdapTarget> {
  const { connection, layout, names } = config
  const ca = await loadAuthority(connection.authority)
  const server = new LdapServer({ ...connection, ca, name: `target "${name}"` })
  const tree = new LdapTree(server, layout)
  const memberships = new LdapMemberships(tree)
  const nesting = new LdapNesting(tree, memberships)
  const answers = new LongAnswers(layout.listMemoryMillis)
  /** Any change may outdate cached answers, also one that failed. */
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
    storable: storableIn(tree),
    checkPlaces: () => tree.checkBases(),
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

/** The attributes of new entries' classes. If the server hides its schema, it decides about each write. */
function storableIn(tree: LdapTree): () => Promise<StorableAttributes> {
  const { users, groups } = tree.layout
  let known: { readonly storable: StorableAttributes; readonly of: ServerSchema | undefined } | undefined
  const without = (names: ReadonlySet<string> | undefined, ...own: readonly string[]): ReadonlySet<string> | 'any' => {
    if (names === undefined) return 'any'
    const excluded = new Set(['objectclass', ...own.map((name) => name.toLowerCase())])
    return new Set([...names].filter((name) => !excluded.has(name)))
  }
  return async () => {
    const schema = await tree.schema()
    if (known !== undefined && known.of === schema) return known.storable
    const storable = {
      users: without(schema?.allowed(await tree.classesOf(users))),
      groups: without(schema?.allowed(await tree.classesOf(groups)), groups.member),
      ...(schema === undefined ? {} : { single: { users: schema.singleTypes, groups: schema.singleTypes } }),
    }
    known = { storable, of: schema }
    return storable
  }
}

interface StoredEntry extends StoredGroup {
  readonly entry: ReadEntry
}

type Groups = Pick<GroupTarget, 'findGroup' | 'createGroup' | 'updateGroup' | 'deleteGroup'>

/** `forget` is called after each change, also after a failed one. */
function ldapGroups(tree: LdapTree, memberships: LdapMemberships, forget: () => void): Groups {
  const store = new LdapGroupStore(tree, memberships)
  return {
    ...reconcileGroups<StoredEntry>(retryingRaces(store, 'name', forget)),
    findGroup: async (name) => (await store.read(name))?.group,
  }
}

class LdapGroupStore implements GroupStore<StoredEntry> {
  readonly touches = true
  readonly rereadsConflicts = true
  readonly #tree: LdapTree
  readonly #memberships: LdapMemberships

  constructor(tree: LdapTree, memberships: LdapMemberships) {
    this.#tree = tree
    this.#memberships = memberships
  }

  async read(name: string): Promise<StoredEntry | undefined> {
    const entry = await this.#tree.groupWithoutMembers({ name })
    return entry && { entry, group: await this.#tree.toGroup(entry, { members: false }) }
  }

  /** Attributes of the distinguished name may exist beside the requested ones. */
  isSame({ group }: StoredEntry, name: string, wanted: Attributes): boolean {
    const named = this.#tree.layout.groups.dn.ownTypes
    return (
      groupChanges(group, name, wanted).length === 0 &&
      (group.attributes?.names() ?? []).every((own) => wanted.has(own) || named.some((type) => isSameName(type, own)))
    )
  }

  async isTaken(name: string, { entry }: StoredEntry): Promise<boolean> {
    const other = await this.#tree.groupEntry(name, [])
    return other !== undefined && other.dn !== entry.dn
  }

  async create(name: string, wanted: Attributes, { changes }: { readonly changes: readonly TargetChange[] }) {
    const { layout, server } = this.#tree
    const { placeholder } = layout.groups
    const dn = this.#dnOf(name)
    const classes = await this.#tree.classesOf(layout.groups)
    const entry = new Map<string, readonly (string | Buffer)[]>([['objectClass', classes]])
    if (placeholder !== undefined) entry.set(layout.groups.member, [placeholder.toString()])
    for (const [type, values] of newEntry(dn, name, wanted, layout.groups.name, layout)) entry.set(type, values)
    await server.add(dn.toString(), entry).catch((error: unknown) => {
      throw nameFailure(error, dn, 'name')
    })
    try {
      await this.#leaveAll(dn.toString())
    } catch (error) {
      await server.delete(dn.toString()).catch(() => {})
      throw error
    }
    return changes
  }

  async write({ entry, group }: StoredEntry, { newName, attributes, changes, expectedVersion, request }: GroupWrite) {
    const { server, layout } = this.#tree
    let condition = this.#tree.whileVersion(expectedVersion)
    let { dn } = entry
    if (group.name !== newName) {
      dn = await this.#rename(entry, newName, condition)
      condition = {}
      report(
        changes.filter(({ subject }) => subject === 'entry'),
        request,
      )
    }
    const attributeChanges = changes.filter(({ subject }) => subject === 'attribute')
    const names = new Set(attributeChanges.map(({ attribute }) => attribute))
    const writes: LdapChange[] = Array.from(names, (attribute) => {
      const values = wireValues(attribute, attributes.get(attribute) ?? [], layout)
      return { operation: 'replace', attribute, values }
    })
    const set = writes.flatMap(({ attribute, values }) => (values.length === 0 ? [] : [attribute]))
    const classes = await this.#tree.missingClasses(layout.groups, entry, set)
    if (classes.length > 0) writes.push({ operation: 'add', attribute: 'objectClass', values: [...classes] })
    if (writes.length === 0 && condition.while !== undefined) {
      writes.push(touch(entry))
    }
    if (writes.length > 0) await server.modify(dn, writes, condition)
    return attributeChanges
  }

  async delete(
    { entry }: StoredEntry,
    { changes, expectedVersion, request }: Parameters<GroupStore<StoredEntry>['delete']>[1],
  ) {
    try {
      await this.#tree.server.delete(entry.dn, this.#tree.whileVersion(expectedVersion))
    } catch (error) {
      if (resultCodeOf(error) === resultCodes.noSuchObject) return []
      throw error
    }
    report(changes, request)
    await this.#leaveAll(entry.dn)
    return []
  }

  /** A failed attempt may have left the group in others. An entry with its name that is not a group stays. */
  async cleanUp(name: string): Promise<void> {
    const dn = this.#dnOf(name).toString()
    if ((await this.#tree.entryAt(dn, ['1.1'])) === undefined) await this.#leaveAll(dn)
  }

  /** A deleted group is no longer a member, and a new one does not inherit the memberships of another with its name. */
  async #leaveAll(dn: string): Promise<void> {
    if (!this.#tree.layout.groups.membersAreLogins) await this.#memberships.leaveAll(dn)
  }

  /** Groups that contain this one get its new name. */
  async #rename(entry: ReadEntry, newName: string, condition: WriteOptions): Promise<string> {
    const { name: attribute, dn: pattern, membersAreLogins } = this.#tree.layout.groups
    const naming = { attribute, pattern, field: 'name', dnOf: () => this.#dnOf(newName) } as const
    const dn = await renameEntry(this.#tree.server, entry, newName, naming, condition)
    if (!membersAreLogins) await this.#memberships.replace(entry.dn, dn)
    return dn
  }

  #dnOf(name: string): Dn {
    const own = this.#tree.layout.groups.name
    return this.#tree.layout.groups.dn.render((place) =>
      place === 'name' || isSameName(place, own) ? name : undefined,
    )
  }
}
