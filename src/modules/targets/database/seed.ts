import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import { Attributes } from '#identity/attributes.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'

const values = z.record(z.string(), z.array(z.string()))
const seedSchema = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), description: z.string().optional() })).default([]),
  users: z
    .array(z.strictObject({ userID: z.string(), attributes: values, groups: z.array(z.string()).default([]) }))
    .default([]),
})

type Seed = z.infer<typeof seedSchema>

/**
 * Puts the file's users and groups into the directory, unless it has users already, or does not answer now. Throws when
 * the file cannot be used.
 */
export async function loadSeed(file: string, users: UserDirectory, log: Logger): Promise<void> {
  const seed = await readSeed(file)
  try {
    await plant(seed, file, users, log)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'TARGET_UNREACHABLE') throw error
    log.warn('directory not seeded, since its database does not answer', { file, error: error.message })
  }
}

async function plant(seed: Seed, file: string, users: UserDirectory, log: Logger): Promise<void> {
  const { total } = await users.searchUsers({ offset: 0, limit: 1 })
  if (total > 0) return
  for (const { name, description } of seed.groups) {
    const attributes = new Map(description === undefined ? [] : [['description', [description]]])
    await unlessThere(() => users.createGroup(name, attributes))
  }
  for (const { userID, attributes, groups } of seed.users) {
    await unlessThere(() => users.create({ userID, groups, attributes: Attributes.from(attributes) }))
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
async function unlessThere(create: () => Promise<unknown>): Promise<void> {
  try {
    await create()
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
  }
}
