import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import * as z from 'zod'
import { hasCode, noUser, report } from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import type { EntryChange } from '#identity/entry-changes.ts'
import { newGroupChanges } from '#identity/entry-changes.ts'
import { timeAttributes } from '#identity/entry-times.ts'
import type { User } from '#identity/user.ts'
import type { ChangeRecorder, UserDirectory, UserSync } from '#identity/user-directory.ts'
import type { Logger } from '#kernel/logger.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, Target, TargetRequest } from '#sdk/target/target.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import { configuredFile, databaseSystem, openPasswords, type Passwords } from './password-hash.ts'

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
    const target = databaseTarget(users, await openPasswords(host, people), {
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

const passwordChange: EntryChange = { subject: 'attribute', action: 'replace', attribute: 'password' }

type DatabaseTarget = LookupTarget & GroupTarget & PasswordTarget & Required<Pick<Target, 'close'>>

/**
 * A UserDirectory as a target. The directory compares and writes in one transaction per call, and returns what it changed,
 * so this target does not use the shared reconcilers. `auditsWithin`: the users are in the database of the audit.
 * `system`: see `databaseSystem`.
 */
export function databaseTarget(
  users: UserDirectory,
  passwords: Passwords,
  { auditsWithin = false, system }: { readonly auditsWithin?: boolean; readonly system?: string } = {},
): DatabaseTarget {
  return {
    groupMembersAreIds: false,
    userIdIsLogin: false,
    groupHasOwnId: true,
    /** Ids are random UUIDs, never reused. */
    idsAreUnique: true,
    ownsValues: true,
    renamesUsers: true,
    keepsVersions: true,
    servedTimes: { users: timeAttributes, groups: timeAttributes },
    auditsWithin,
    findUser: (userID) => users.findByLogin(userID),
    lookupUserByLogin: (login) => users.findByLogin(login),
    lookupUserById: (id) => users.findById(id),
    searchUsers: (query) => users.searchUsers(query),
    findGroup: (name) => users.findGroupByName(name, { members: false }),
    lookupGroupByName: (name, options) => users.findGroupByName(name, options),
    lookupGroupById: (id, options) => users.findGroupById(id, options),
    searchGroups: (query) => users.searchGroups(query),
    containingGroups: (ids) => users.containingGroups(ids),
    ...userWrites(users, passwords),
    ...groupWrites(users),

    async storedAt(userID) {
      const user = system === undefined ? undefined : await users.findByLogin(userID)
      return user === undefined || system === undefined ? undefined : { system, name: user.userID }
    },

    async close() {
      await users.close()
      await passwords.close()
    },
  }
}

type UserWrites = Pick<DatabaseTarget, 'createUser' | 'syncUser' | 'deleteUser' | 'setUserPassword'>

function userWrites(users: UserDirectory, passwords: Passwords): UserWrites {
  return {
    async createUser(user, attributes, request, options) {
      const wanted = { ...user, attributes: user.attributes.pick(attributes) }
      await unlessThere(
        () => withAudit(request, (record) => users.create(wanted, record)),
        async () => {
          if (options?.mustBeNew === true) return false
          const stored = await users.findByLogin(user.userID)
          return stored !== undefined && stored.userID === user.userID && isSameUser(stored, wanted)
        },
      )
    },

    async syncUser(user, { attributes, keepGroups, ...options }, request) {
      const change: UserSync = {
        ...options,
        userID: user.userID,
        attributes: new Map(attributes.map((name) => [name, user.attributes.values(name)])),
        groups: keepGroups ? undefined : user.groups,
      }
      await withAudit(request, (record) => users.sync(change, record))
    },

    async deleteUser(user, request, options) {
      const id = (await users.findByLogin(user.userID))?.id
      await withAudit(request, (record) => users.delete(user.userID, options, record))
      if (id !== undefined) await passwords.remove(id)
    },

    /** Valid for logins through a directory insert with the same users. BAD_REQUEST if too short or too long. */
    async setUserPassword(user, password, request) {
      const id = (await users.findByLogin(user.userID))?.id
      if (id === undefined) throw noUser(user.userID)
      const hash = await passwords.hash(password)
      await withAudit(request, async (record) => {
        const recordPassword = record && ((transaction: object) => record(transaction, [passwordChange]))
        await passwords.set(id, hash, recordPassword)
        return [passwordChange]
      })
    },
  }
}

type GroupWrites = Pick<DatabaseTarget, 'createGroup' | 'updateGroup' | 'deleteGroup' | 'changeMemberGroups'>

function groupWrites(users: UserDirectory): GroupWrites {
  return {
    async createGroup(name, attributes, request, options) {
      const wanted = Attributes.from(attributes)
      await unlessThere(
        async () => {
          const created = await users.createGroup(name, new Map(wanted))
          report(newGroupChanges(created.name, wanted), request)
        },
        async () => {
          if (options?.mustBeNew === true) return false
          const stored = await users.findGroupByName(name, { members: false })
          return stored?.name === name && sameAttributes(stored.attributes ?? new Attributes(), wanted)
        },
      )
    },

    updateGroup: (name, change, request) => withAudit(request, (record) => users.updateGroup(name, change, record)),

    async deleteGroup(name, request, options) {
      if (await users.deleteGroup(name, options)) {
        request.audit({ subject: 'entry', action: 'delete', attribute: 'name', value: name })
      }
    },

    changeMemberGroups: (name, change, request) =>
      withAudit(request, (record) => users.changeMemberGroups(name, change, record)),
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
  change: (record?: ChangeRecorder) => Promise<readonly EntryChange[]>,
): Promise<void> {
  const { auditWithin } = request
  let audited = false
  const record: ChangeRecorder | undefined =
    auditWithin &&
    (async (transaction, changes) => {
      audited = await auditWithin(transaction, changes)
    })
  for (const made of await change(record)) request.audit(audited ? { ...made, audited } : made)
}
