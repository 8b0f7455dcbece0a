import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import * as z from 'zod'
import { hasCode, noUser } from '#adapters/targets/shared/user-reconciler.ts'
import type { EntryChange } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { unaudited } from '#identity/entry-changes.ts'
import { timeAttributes } from '#identity/entry-times.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Logger } from '#kernel/logger.ts'
import { postgresAddressProblem } from '#protocols/sql/postgres-address.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, Target } from '#sdk/target/target.ts'
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
    if (url !== undefined && file === undefined) {
      const problem = /^postgres(ql)?:\/\/./.test(url)
        ? postgresAddressProblem(url)
        : 'must start with postgres:// or sqlite:'
      if (problem !== undefined) issues.error(params.pathOf('url'), `"url": ${problem}`)
    }
    return {
      directory,
      url: file === undefined ? url : `sqlite:${resolve(context.folder, file)}`,
      seed: seed === undefined ? undefined : configuredFile('seed', seed, params, issues, context),
    }
  },
  store: (config, name) => databaseSystem(usersOf(config, name)),
  create: async ({ seed, ...config }, host) => {
    const { url } = config
    const people = usersOf(config, host.name)
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

/** Where the users of a target of this name are. */
const usersOf = ({ directory, url }: { directory: string | undefined; url: string | undefined }, name: string) => ({
  name: directory ?? name,
  ...(url === undefined ? {} : { url }),
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
    const attributes = description === undefined ? {} : { description: [description] }
    await unlessExists(() => users.createGroup(name, attributes, unaudited))
  }
  for (const { userID, attributes, groups } of seed.users) {
    const user = { userID, groups, attributes: Attributes.from(attributes) }
    await unlessExists(() => users.createUser(user, Object.keys(attributes), unaudited))
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
 * A UserDirectory as a target. The directory compares and writes in one transaction per call, so this target does not use
 * the shared reconcilers. `auditsWithin`: the users are in the database of the audit. `system`: see `databaseSystem`.
 */
export function databaseTarget(
  users: UserDirectory,
  passwords: Passwords,
  { auditsWithin = false, system }: { readonly auditsWithin?: boolean; readonly system?: string } = {},
): DatabaseTarget {
  return {
    ...users,
    groupMembersAreIds: false,
    userIdIsLogin: false,
    groupHasOwnId: true,
    /** Ids are random UUIDs, never reused. */
    idsAreUnique: true,
    ownsValues: true,
    sortsLogins: true,
    renamesUsers: true,
    keepsVersions: true,
    servedTimes: { users: timeAttributes, groups: timeAttributes },
    auditsWithin,
    findUser: (userID) => users.lookupUserByLogin(userID),
    findGroup: (name) => users.lookupGroupByName(name, { members: false }),

    async deleteUser(user, request, options) {
      const id = (await users.lookupUserByLogin(user.userID))?.id
      await users.deleteUser(user, request, options)
      if (id !== undefined) await passwords.remove(id)
    },

    /** Valid for logins through a directory insert with the same users. BAD_REQUEST if too short or too long. */
    async setUserPassword(user, password, request) {
      const id = (await users.lookupUserByLogin(user.userID))?.id
      if (id === undefined) throw noUser(user.userID)
      const { auditWithin } = request
      let audited = false
      await passwords.set(id, await passwords.hash(password), async (transaction) => {
        audited = (await auditWithin?.(transaction, [passwordChange])) ?? false
      })
      request.audit(audited ? { ...passwordChange, audited } : passwordChange)
    },

    async storedAt(userID) {
      const user = system === undefined ? undefined : await users.lookupUserByLogin(userID)
      return user === undefined || system === undefined ? undefined : { system, name: user.userID }
    },

    async close() {
      await users.close()
      await passwords.close()
    },
  }
}
