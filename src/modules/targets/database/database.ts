import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import * as z from 'zod'
import { Attributes } from '#identity/attributes.ts'
import { newGroupChanges } from '#identity/entry-changes.ts'
import { timeAttributes } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { ChangeRecorder, UserChange, UserDirectory, UserSync } from '#identity/user-directory.ts'
import type { Logger } from '#kernel/logger.ts'
import { configuredFile, databaseSystem, openPasswords, type Passwords } from '#modules/shared/passwords/passwords.ts'
import { hasCode, noUser, report } from '#modules/shared/targets/user-reconciler.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type {
  ContainingGroup,
  CreateOptions,
  GroupChange,
  GroupReadOptions,
  GroupTarget,
  LookupTarget,
  MemberGroupChange,
  PasswordTarget,
  SearchPage,
  SearchQuery,
  StoredAccount,
  SyncOptions,
  TargetRequest,
} from '#sdk/target/target.ts'
import { defineTarget } from '#sdk/target/target-module.ts'

const parameters = {
  directory: text({
    about:
      'The name under which its users and groups are stored in the database; the name of the target when absent. Two targets with the same directory have the same users.',
  }),
  url: text({
    about:
      '`postgres://…`, or `sqlite:` and a file, relative to the configuration folder; the database of Gatehouse itself when absent. Give it as a secret parameter when it holds a password.',
    secret: true,
  }),
  seed: text({
    about:
      'A JSON file in the configuration folder with users and groups, loaded once, while the directory is empty. For demonstrations.',
  }),
}

/** Users, groups, memberships and passwords in a database: the one Gatehouse runs on, or another. */
export default defineTarget({
  className: 'targets.Database',
  parameters,
  parse: (params, issues, context) => {
    const { directory, url, seed } = readParameters(parameters, params, issues, context)
    const file = url === undefined ? undefined : /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
    if (url !== undefined && file === undefined && !/^postgres(ql)?:\/\/./.test(url)) {
      issues.error(params.pathOf('url'), '"url": must start with postgres:// or sqlite:')
    }
    return {
      directory,
      url: file === undefined ? url : `sqlite:${resolve(context.folder, file)}`,
      seed: seed === undefined ? undefined : configuredFile('seed', seed, params, issues, context),
    }
  },
  create: async ({ directory, url, seed }, host) => {
    const people = { name: directory ?? host.name, ...(url === undefined ? {} : { url }) }
    const users = await host.openUserDirectory(people)
    const target = new DatabaseTarget(users, await openPasswords(host, people), {
      auditsWithin: url === undefined,
      system: databaseSystem(people),
    })
    try {
      if (seed !== undefined) await loadSeed(seed, users, host.log)
    } catch (error) {
      await target.close()
      throw error
    }
    return target
  },
})

const values = z.record(z.string(), z.array(z.string()))
const seedSchema = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), description: z.string().optional() })).default([]),
  users: z
    .array(z.strictObject({ userID: z.string(), attributes: values, groups: z.array(z.string()).default([]) }))
    .default([]),
})

type Seed = z.infer<typeof seedSchema>

/** Inserts the file's users and groups, unless the directory has users or does not answer. Throws if it is invalid. */
export async function loadSeed(file: string, users: UserDirectory, log: Logger): Promise<void> {
  const seed = await readSeed(file)
  try {
    await insertSeed(seed, file, users, log)
  } catch (error) {
    if (!hasCode(error, 'TARGET_UNREACHABLE')) throw error
    log.warn('directory not seeded: its database does not answer', { file, error: error.message })
  }
}

async function insertSeed(seed: Seed, file: string, users: UserDirectory, log: Logger): Promise<void> {
  const { total } = await users.searchUsers({ offset: 0, limit: 1 })
  if (total > 0) return
  for (const { name, description } of seed.groups) {
    const attributes = new Map(description === undefined ? [] : [['description', [description]]])
    await unlessExists(() => users.createGroup(name, attributes))
  }
  for (const { userID, attributes, groups } of seed.users) {
    await unlessExists(() => users.create({ userID, groups, attributes: Attributes.from(attributes) }))
  }
  log.info('directory seeded', { file, users: seed.users.length, groups: seed.groups.length })
}

async function readSeed(file: string): Promise<Seed> {
  try {
    return seedSchema.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause)
    throw new Error(`seed ${file}: ${reason}`, { cause })
  }
}

/** Another process may be seeding the same directory. */
async function unlessExists(create: () => Promise<unknown>): Promise<void> {
  try {
    await create()
  } catch (error) {
    if (!hasCode(error, 'CONFLICT')) throw error
  }
}

const passwordChange: UserChange = { subject: 'attribute', action: 'replace', attribute: 'password' }

/**
 * A UserDirectory as a target. The directory compares and writes in one transaction per call, and returns what it changed,
 * so this target does not use the shared reconcilers.
 */
export class DatabaseTarget implements LookupTarget, GroupTarget, PasswordTarget {
  readonly groupMembersAreIds = false
  readonly userIdIsLogin = false
  readonly groupHasOwnId = true
  /** Ids are random UUIDs, never reused. */
  readonly idsAreUnique = true
  readonly renamesUsers = true
  readonly keepsVersions = true
  readonly servedTimes = { users: timeAttributes, groups: timeAttributes }
  readonly auditsWithin: boolean
  readonly #users: UserDirectory
  readonly #passwords: Passwords
  readonly #system: string | undefined

  /** `auditsWithin`: the users are in the database of the audit. `system`: see `databaseSystem`. */
  constructor(
    users: UserDirectory,
    passwords: Passwords,
    { auditsWithin = false, system }: { readonly auditsWithin?: boolean; readonly system?: string } = {},
  ) {
    this.#users = users
    this.#passwords = passwords
    this.#system = system
    this.auditsWithin = auditsWithin
  }

  async storedAt(userID: string): Promise<StoredAccount | undefined> {
    const user = this.#system === undefined ? undefined : await this.#users.findByLogin(userID)
    return user === undefined || this.#system === undefined ? undefined : { system: this.#system, name: user.userID }
  }

  findUser(userID: string): Promise<User | undefined> {
    return this.#users.findByLogin(userID)
  }

  async createUser(
    user: User,
    attributes: readonly string[],
    request: TargetRequest,
    options?: CreateOptions,
  ): Promise<void> {
    const wanted = { ...user, attributes: user.attributes.pick(attributes) }
    await unlessThere(
      () => withAudit(request, (record) => this.#users.create(wanted, record)),
      async () => {
        if (options?.mustBeNew === true) return false
        const stored = await this.#users.findByLogin(user.userID)
        return stored !== undefined && stored.userID === user.userID && isSameUser(stored, wanted)
      },
    )
  }

  async syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const { addOnly, attributes, keepGroups, expectedVersion, expectedGroup, newUserID } = options
    const change: UserSync = {
      userID: user.userID,
      attributes: new Map(attributes.map((name) => [name, user.attributes.values(name)])),
      groups: keepGroups ? undefined : user.groups,
      addOnly,
      ...(expectedVersion === undefined ? {} : { expectedVersion }),
      ...(expectedGroup === undefined ? {} : { expectedGroup }),
      ...(newUserID === undefined ? {} : { newUserID }),
    }
    await withAudit(request, (record) => this.#users.sync(change, record))
  }

  async deleteUser(user: User, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void> {
    const id = (await this.#users.findByLogin(user.userID))?.id
    await withAudit(request, (record) => this.#users.delete(user.userID, options, record))
    if (id !== undefined) await this.#passwords.remove(id)
  }

  /** Valid for logins through a directory insert with the same users. BAD_REQUEST if too short or too long. */
  async setUserPassword(user: User, password: string, request: TargetRequest): Promise<void> {
    const id = (await this.#users.findByLogin(user.userID))?.id
    if (id === undefined) throw noUser(user.userID)
    const hash = await this.#passwords.hash(password)
    await withAudit(request, async (record) => {
      const recordPassword = record && ((transaction: object) => record(transaction, [passwordChange]))
      await this.#passwords.set(id, hash, recordPassword)
      return [passwordChange]
    })
  }

  lookupUserByLogin(login: string): Promise<User | undefined> {
    return this.#users.findByLogin(login)
  }

  lookupUserById(id: string): Promise<User | undefined> {
    return this.#users.findById(id)
  }

  searchUsers(query: SearchQuery): Promise<SearchPage<User>> {
    return this.#users.searchUsers(query)
  }

  lookupGroupByName(name: string, options?: GroupReadOptions): Promise<Group | undefined> {
    return this.#users.findGroupByName(name, options)
  }

  lookupGroupById(id: string, options?: GroupReadOptions): Promise<Group | undefined> {
    return this.#users.findGroupById(id, options)
  }

  searchGroups(query: SearchQuery): Promise<SearchPage<Group>> {
    return this.#users.searchGroups(query)
  }

  findGroup(name: string): Promise<Group | undefined> {
    return this.#users.findGroupByName(name, { members: false })
  }

  async createGroup(
    name: string,
    attributes: Readonly<Record<string, readonly string[]>>,
    request: TargetRequest,
    options?: CreateOptions,
  ): Promise<void> {
    const wanted = Attributes.from(attributes)
    await unlessThere(
      async () => {
        const created = await this.#users.createGroup(name, new Map(wanted))
        report(newGroupChanges(created.name, wanted), request)
      },
      async () => {
        if (options?.mustBeNew === true) return false
        const stored = await this.findGroup(name)
        return stored?.name === name && sameAttributes(stored.attributes ?? new Attributes(), wanted)
      },
    )
  }

  async updateGroup(name: string, change: GroupChange, request: TargetRequest): Promise<void> {
    const { attributes, ...rest } = change
    const values = attributes === undefined ? {} : { attributes: new Map(Object.entries(attributes)) }
    await withAudit(request, (record) => this.#users.updateGroup(name, { ...rest, ...values }, record))
  }

  async deleteGroup(
    name: string,
    request: TargetRequest,
    options?: { readonly expectedVersion?: string },
  ): Promise<void> {
    if (await this.#users.deleteGroup(name, options)) {
      request.audit({ subject: 'entry', action: 'delete', attribute: 'name', value: name })
    }
  }

  async changeMemberGroups(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    await withAudit(request, (record) => this.#users.changeMemberGroups(name, change, record))
  }

  containingGroups(ids: readonly string[]): Promise<ReadonlyMap<string, readonly ContainingGroup[]>> {
    return this.#users.containingGroups(ids)
  }

  async close(): Promise<void> {
    await this.#users.close()
    await this.#passwords.close()
  }
}

/** Creating the same entry again is not a conflict: the answer to the first attempt may have been lost. */
async function unlessThere(create: () => Promise<void>, isThere: () => Promise<boolean>): Promise<void> {
  try {
    await create()
  } catch (error) {
    if (!hasCode(error, 'CONFLICT') || !(await isThere())) throw error
  }
}

function isSameUser(stored: User, wanted: User): boolean {
  const keys = (groups: readonly string[]) => [...new Set(groups.map((name) => name.toLowerCase()))].sort()
  return sameAttributes(stored.attributes, wanted.attributes) && sameTexts(keys(stored.groups), keys(wanted.groups))
}

const sameAttributes = (stored: Attributes, wanted: Attributes): boolean =>
  stored.size === wanted.size && Array.from(wanted).every(([name, values]) => sameTexts(stored.values(name), values))

const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, i) => text === b[i])

/** Makes changes and audits them: in their own transaction if possible, else with the run. */
async function withAudit(
  request: TargetRequest,
  change: (record?: ChangeRecorder) => Promise<readonly UserChange[]>,
): Promise<void> {
  const { auditWithin } = request
  let written = false
  const record: ChangeRecorder | undefined =
    auditWithin &&
    (async (transaction, changes) => {
      written = await auditWithin(transaction, changes)
    })
  for (const made of await change(record)) request.audit(made, written)
}
