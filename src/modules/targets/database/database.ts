import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import * as z from 'zod'
import { Attributes } from '#identity/attributes.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Logger } from '#kernel/logger.ts'
import { configuredFile } from '#modules/shared/passwords/configured-file.ts'
import { databaseSystem, openPasswords } from '#modules/shared/passwords/passwords.ts'
import { hasCode } from '#modules/shared/targets/user-reconciler.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { defineTarget } from '#sdk/target/target.ts'
import { DatabaseTarget } from './database-target.ts'

const parameters = {
  directory: text({
    about: 'The name under which its users and groups are stored in the database; the name of the target when absent.',
  }),
  url: text({
    about:
      '`postgres://…`, or `sqlite:` and a file, relative to the configuration folder; the database of Gatehouse itself when absent.',
    secret: true,
  }),
  seed: text({
    about:
      'A JSON file in the configuration folder with users and groups, loaded once, while there are no users. For demonstrations.',
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

/**
 * Inserts the file's users and groups, unless the directory has users already or does not answer. Throws when the file is
 * invalid.
 */
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
