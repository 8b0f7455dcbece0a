import { Attributes } from '#identity/attributes.ts'
import type { ChangeRecorder, UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { Argon2Cost } from '#kernel/argon2id.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { hashPassword, isPassword, usualCost } from '#modules/shared/passwords/password-hash.ts'
import type { ModuleHost } from '#sdk/module/host.ts'

/** Each hash takes memory and a thread of the process, so few run at a time, in all inserts and targets together. */
const hashing = new KeyedQueue({ width: 2, maxPending: 202 })
/** RFC 9106 and common sense: the shortest and longest password that is taken. */
const limits = { characters: 8, bytes: 1024 } as const
const attribute = 'hash'
const demoMark = 'demo'
const nobody = 'nobody'

/** The passwords of the people of a directory, which every door to the same people opens alike. */
export const openPasswords = async (
  host: Pick<ModuleHost, 'openUserDirectory'>,
  people: UserDirectoryOptions,
): Promise<Passwords> => new Passwords(await host.openUserDirectory({ ...people, name: `${people.name}/passwords` }))

/** What a target and a directory insert with the same people call the place where these are stored. */
export const databaseSystem = ({ name, url = '' }: UserDirectoryOptions): string =>
  JSON.stringify(['database', url, name])

/**
 * Hashes by the ids of people, in a name space of their own: whoever reads people, by whatever door, does not come across
 * them, and who gets a login that another had does not get the password with it.
 */
export class Passwords {
  readonly #records: UserDirectory
  readonly #cost: Argon2Cost

  constructor(records: UserDirectory, cost = usualCost) {
    this.#records = records
    this.#cost = cost
  }

  /** Throws BAD_REQUEST for a password that is not taken. */
  async hash(password: string): Promise<string> {
    const bytes = Buffer.byteLength(password)
    if ([...password].length < limits.characters || bytes > limits.bytes || password.includes('\0')) {
      const text = `A password has from ${limits.characters} characters to ${limits.bytes} bytes.`
      throw new GatewayError('BAD_REQUEST', 'a password that is not taken', { publicText: text })
    }
    return hashing.run('', () => hashPassword(password, this.#cost))
  }

  /** `record` is part of the same commit, and does not get the hash. Sets or removes the mark of a demo password. */
  async set(
    id: string,
    hash: string,
    record?: (transaction: object) => Promise<void>,
    demo: 'demo' | 'real' = 'real',
  ): Promise<void> {
    const values = { [attribute]: [hash], [demoMark]: demo === 'demo' ? ['true'] : [] }
    const change = { userID: id, attributes: new Map(Object.entries(values)), groups: undefined, addOnly: false }
    const within: ChangeRecorder | undefined = record && ((transaction) => record(transaction))
    try {
      await this.#records.sync(change, within)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error
      const attributes = Attributes.from(values)
      await this.#records.create({ userID: id, attributes, groups: [] }, within)
    }
  }

  /** Does the same work whether or not a user has that id and a password. `demo`: the password is right, and marked as a demo password. */
  async check(id: string | undefined, password: string): Promise<boolean | 'demo'> {
    const record = await this.#records.findByLogin(id ?? nobody)
    const hash = id === undefined ? undefined : record?.attributes.first(attribute)
    const right = await hashing.run('', () => isPassword(password, hash, this.#cost))
    return right && record?.attributes.first(demoMark) !== undefined ? 'demo' : right
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
