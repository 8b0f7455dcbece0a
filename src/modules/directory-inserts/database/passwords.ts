import { Attributes } from '#identity/attributes.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { WorkQueue } from '#kernel/work-queue.ts'
import { hashPassword, isPassword } from './password-hash.ts'

/** Hashing takes memory and a thread of the process each, so that few go on at a time, in all inserts together. */
const hashing = new WorkQueue(2, 200)
/** RFC 9106 and common sense: the shortest and longest password that is taken. */
const limits = { characters: 8, bytes: 1024 } as const
const attribute = 'hash'
const nobody = 'nobody'

/**
 * Hashes by the ids of people, in a name space of their own: whoever reads people, by whatever door, does not come across
 * them, and who gets a login that another had does not get the password with it.
 */
export class Passwords {
  readonly #records: UserDirectory

  constructor(records: UserDirectory) {
    this.#records = records
  }

  /** Throws BAD_REQUEST for a password that is not taken. */
  async hash(password: string): Promise<string> {
    const bytes = Buffer.byteLength(password)
    if ([...password].length < limits.characters || bytes > limits.bytes || password.includes('\0')) {
      const text = `A password has from ${limits.characters} characters to ${limits.bytes} bytes.`
      throw new GatewayError('BAD_REQUEST', 'a password that is not taken', { publicText: text })
    }
    return hashing.run(() => hashPassword(password))
  }

  async set(id: string, hash: string): Promise<void> {
    const change = { userID: id, attributes: new Map([[attribute, [hash]]]), groups: undefined, addOnly: false }
    try {
      await this.#records.sync(change)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error
      await this.#records.create({ userID: id, attributes: Attributes.from({ [attribute]: [hash] }), groups: [] })
    }
  }

  /** The same work whether or not there is somebody of that id, with a password. */
  async check(id: string | undefined, password: string): Promise<boolean> {
    const record = await this.#records.findByLogin(id ?? nobody)
    const hash = id === undefined ? undefined : record?.attributes.first(attribute)
    return hashing.run(() => isPassword(password, hash))
  }

  async has(id: string): Promise<boolean> {
    return (await this.#records.findByLogin(id)) !== undefined
  }

  /** Whether anybody has one. */
  async any(): Promise<boolean> {
    return (await this.#records.searchUsers({ offset: 0, limit: 1 })).total > 0
  }

  async remove(id: string): Promise<void> {
    await this.#records.delete(id)
  }

  close(): Promise<void> {
    return this.#records.close()
  }
}
