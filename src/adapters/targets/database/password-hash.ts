import { timingSafeEqual } from 'node:crypto'
import { existsSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import type { ChangeAudit } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { unaudited } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { type Argon2Cost, argon2idHash, derive, saltBytes, tagBytes } from '#protocols/passwords/argon2id.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { TargetHost } from '#sdk/target-module/target-module.ts'

/** Each hash takes memory and a thread of the process, so few run at a time, in all inserts and targets together. */
const hashing = new KeyedQueue({ width: 2, maxPending: 202 })
/** RFC 9106 and common sense: the shortest and longest password that is accepted. */
const limits = { characters: 8, bytes: 1024 } as const
const attribute = 'hash'
const demoMark = 'demo'
const unknownId = 'nobody'

/** The passwords of the users of a directory, shared by every module that opens the same users. */
export const openPasswords = async (
  host: Pick<TargetHost, 'openUserDirectory'>,
  people: UserDirectoryOptions,
): Promise<Passwords> => new Passwords(await host.openUserDirectory({ ...people, name: `${people.name}/passwords` }))

/** The name that a target and a directory insert with the same users give to their store. */
export const databaseSystem = ({ name, url = '' }: UserDirectoryOptions): string =>
  JSON.stringify(['database', url, name])

/**
 * Hashes by the ids of users, in their own name space: no read of users returns them, and a user who gets the former
 * login of another does not get the password with it.
 */
export class Passwords {
  readonly #records: UserDirectory
  readonly #cost: Argon2Cost

  constructor(records: UserDirectory, cost = usualCost) {
    this.#records = records
    this.#cost = cost
  }

  /** Throws BAD_REQUEST for a password that is not accepted. */
  async hash(password: string): Promise<string> {
    const bytes = Buffer.byteLength(password)
    if ([...password].length < limits.characters || bytes > limits.bytes || password.includes('\0')) {
      const text = `A password has from ${limits.characters} characters to ${limits.bytes} bytes.`
      throw new GatewayError('BAD_REQUEST', 'a password that is not taken', { publicText: text })
    }
    return hashing.run('', () => hashPassword(password, this.#cost))
  }

  /** `record` is part of the same commit, without the hash. Sets or removes the mark of a demo password. */
  async set(
    id: string,
    hash: string,
    record?: (transaction: object) => Promise<void>,
    demo: 'demo' | 'real' = 'real',
  ): Promise<void> {
    const values = { [attribute]: [hash], ...(demo === 'demo' ? { [demoMark]: ['true'] } : {}) }
    const user = { ...recordOf(id), attributes: Attributes.from(values) }
    const attributes = [attribute, demoMark]
    const request: ChangeAudit = {
      ...unaudited,
      auditWithin: async (transaction) => {
        await record?.(transaction)
        return true
      },
    }
    try {
      await this.#records.syncUser(user, { addOnly: false, attributes, keepGroups: true }, request)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error
      await this.#records.createUser(user, attributes, request)
    }
  }

  /** Does the same work whether or not a user has that id and a password. `demo`: the password is right, and marked as a demo password. */
  async check(id: string | undefined, password: string): Promise<boolean | 'demo'> {
    const record = await this.#records.lookupUserByLogin(id ?? unknownId)
    const hash = id === undefined ? undefined : record?.attributes.first(attribute)
    const right = await hashing.run('', () => isPassword(password, hash, this.#cost))
    return right && record?.attributes.first(demoMark) !== undefined ? 'demo' : right
  }

  async has(id: string): Promise<boolean> {
    return (await this.#records.lookupUserByLogin(id)) !== undefined
  }

  /** Whether any user has one. */
  async any(): Promise<boolean> {
    return (await this.#records.searchUsers({ offset: 0, limit: 1 })).total > 0
  }

  async remove(id: string): Promise<void> {
    await this.#records.deleteUser(recordOf(id), unaudited)
  }

  close(): Promise<void> {
    return this.#records.close()
  }
}

const recordOf = (id: string): User => ({ userID: id, attributes: new Attributes(), groups: [] })

/** The cost of one check of a password: RFC 9106's second choice in proportion, as OWASP advises for servers. */
const usualCost: Argon2Cost = { memory: 19_456, passes: 2, parallelism: 1 }
/** More than any hash of this module uses; a stored one beyond it comes from elsewhere. */
const most = { memory: 1 << 20, passes: 16, parallelism: 16 } as const

/** The argon2id hash of a password in PHC form. The salt is part of it. */
export const hashPassword = (password: string, cost = usualCost): Promise<string> =>
  argon2idHash(asTyped(password), cost)

/** Whether the hash matches this password. Without a hash it does the same work, and returns false. */
export async function isPassword(password: string, hash: string | undefined, cost = usualCost): Promise<boolean> {
  const stored = hash === undefined ? undefined : readHash(hash)
  const { salt, tag, ...asked } = stored ?? { ...cost, salt: noSalt, tag: noTag }
  const made = await derive('argon2id', {
    message: asTyped(password),
    nonce: salt,
    memory: asked.memory,
    passes: asked.passes,
    parallelism: asked.parallelism,
    tagLength: tag.length,
  })
  return timingSafeEqual(made, tag) && stored !== undefined
}

const noSalt = Buffer.alloc(saltBytes)
const noTag = Buffer.alloc(tagBytes)

/** The same word may be typed in several sequences of characters (RFC 8265 4.2). */
const asTyped = (password: string): string => password.normalize('NFC')

function readHash(text: string): (Argon2Cost & { readonly salt: Buffer; readonly tag: Buffer }) | undefined {
  const match = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([\w+/]{11,86})\$([\w+/]{16,86})$/.exec(text)
  if (match === null) return undefined
  const [, memory, passes, parallelism, salt = '', tag = ''] = match
  const asked = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  if (asked.memory > most.memory || asked.passes > most.passes || asked.parallelism > most.parallelism) return undefined
  return { ...asked, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

/** The full path of a file that a parameter names. It must exist inside the configuration folder. */
export function configuredFile(
  parameter: string,
  name: string,
  params: Params,
  issues: Issues,
  { folder }: ParseContext,
): string | undefined {
  const file = resolve(folder, name)
  const inside = relative(folder, file)
  if (isAbsolute(name) || inside.startsWith('..')) {
    issues.error(params.pathOf(parameter), 'must be a file in the configuration folder')
    return undefined
  }
  if (!existsSync(file)) {
    issues.error(params.pathOf(parameter), `"${parameter}": no such file in the configuration folder: ${inside}`)
  }
  return file
}
