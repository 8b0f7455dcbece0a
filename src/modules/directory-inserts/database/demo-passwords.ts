import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import { GatewayError } from '#kernel/errors.ts'
import type { Passwords } from '#modules/shared/passwords/passwords.ts'
import type { InsertHost } from '#sdk/directory/directory-insert.ts'

const schema = z.record(z.string(), z.string())

/** Passwords that everyone who has the configuration knows. */
export interface DemoPasswords {
  /** Whether it is the login's password in the file, however it came into the database. */
  isKnown(login: string, password: string): boolean
  /** Whether such a password lets a caller in; logs where it does not. */
  accepts(login: string, local: boolean): boolean
}

/** For configurations without demo passwords: an earlier one may have left some in the database. */
export const noDemoPasswords: DemoPasswords = { isKnown: () => false, accepts: () => false }

/**
 * Sets the file's passwords, unless a user has one already, or the database does not answer now. Skips logins that no user
 * has. They work on a loopback listener, for callers on the same machine; behind another listener none is set,
 * and none is accepted. Throws when the file cannot be used.
 */
export async function loadDemoPasswords(
  file: string,
  people: { setPassword(login: string, password: string, kind: 'demo'): Promise<unknown> },
  passwords: Pick<Passwords, 'any'>,
  { log, loopbackOnly = false }: Pick<InsertHost, 'log' | 'loopbackOnly'>,
): Promise<DemoPasswords> {
  const wanted = await read(file)
  const known = new Map(Object.entries(wanted).map(([login, password]) => [login.toLowerCase(), password]))
  const demo: DemoPasswords = {
    isKnown: (login, password) => known.get(login.toLowerCase()) === password,
    accepts: (login, local) => {
      if (loopbackOnly && local) return true
      log.warn('login rejected: demo passwords work only on this machine, on a loopback listener', { login })
      return false
    },
  }
  if (!loopbackOnly) {
    log.warn('demo passwords are off: the listener is not a loopback address', { file, logins: Object.keys(wanted) })
    return demo
  }
  try {
    if (await passwords.any()) return demo
    await Promise.all(Object.entries(wanted).map(([login, password]) => setUnlessAbsent(people, login, password)))
    log.warn('passwords set that everybody can read in the configuration', { file, logins: Object.keys(wanted) })
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'TARGET_UNREACHABLE') throw error
    log.warn('demo passwords not set, since the database does not answer', { file, error: error.message })
  }
  return demo
}

async function setUnlessAbsent(people: Parameters<typeof loadDemoPasswords>[1], login: string, password: string) {
  try {
    await people.setPassword(login, password, 'demo')
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
