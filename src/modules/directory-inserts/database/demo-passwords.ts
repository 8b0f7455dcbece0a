import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { PeopleInsert } from '#sdk/directory-insert.ts'
import type { Passwords } from '#sdk/passwords.ts'

const schema = z.record(z.string(), z.string())

/**
 * Sets the file's passwords, unless somebody has one already, or the database does not answer now. Logins that nobody has
 * are left out. Throws when the file cannot be used.
 */
export async function loadDemoPasswords(
  file: string,
  people: Pick<PeopleInsert, 'setPassword'>,
  passwords: Pick<Passwords, 'any'>,
  log: Logger,
): Promise<void> {
  const wanted = await read(file)
  try {
    if (await passwords.any()) return
    await Promise.all(Object.entries(wanted).map(([login, password]) => setUnlessAbsent(people, login, password)))
    log.warn('passwords set that everybody can read in the configuration', { file, logins: Object.keys(wanted) })
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'TARGET_UNREACHABLE') throw error
    log.warn('demo passwords not set, since the database does not answer', { file, error: error.message })
  }
}

async function setUnlessAbsent(people: Pick<PeopleInsert, 'setPassword'>, login: string, password: string) {
  try {
    await people.setPassword(login, password)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error
  }
}

/** What is wrong is told without the values. */
async function read(file: string): Promise<Readonly<Record<string, string>>> {
  let parsed: unknown
  try {
    parsed = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw new Error(`demo passwords ${file}: cannot be read as JSON`, { cause })
  }
  const checked = schema.safeParse(parsed)
  if (!checked.success) throw new Error(`demo passwords ${file}: must be texts by login`)
  return checked.data
}
