import { Attribute, BerWriter, Change, type Client, Control, DN } from 'ldapts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { asBytes, dnOf, type LdapEntry, readEntry } from './ldap-entry.ts'
import { resultCodeOf, resultCodes } from './ldap-failure.ts'
import { type LdapFilter, toWireFilter } from './ldap-filter.ts'
import { LdapPool, type LdapPoolOptions } from './ldap-pool.ts'

interface LdapServerOptions extends LdapPoolOptions {
  /** Entries of a page (RFC 2696). */
  readonly pageSize: number
  /** The handling of referrals, which are never followed. */
  readonly referrals: 'ignore' | 'refuse'
}

export interface LdapSearch {
  readonly base: string
  readonly scope: 'base' | 'one' | 'sub'
  readonly filter: LdapFilter
  readonly attributes: readonly string[]
}

export interface LdapChange {
  readonly operation: 'add' | 'delete' | 'replace'
  readonly attribute: string
  readonly values: readonly (string | Buffer)[]
}

export interface WriteOptions {
  /** The change is made only while the entry matches; else VERSION_MISMATCH. */
  readonly while?: LdapFilter | undefined
}

/** A server's operations. Every failure is a GatewayError that names the server; every wait is bounded. */
export class LdapServer {
  readonly #options: LdapServerOptions
  readonly #pool: LdapPool

  constructor(options: LdapServerOptions) {
    this.#options = options
    this.#pool = new LdapPool(options)
  }

  /** As in errors. */
  get name(): string {
    return this.#options.name
  }

  /**
   * For searches that find few entries: all of them, in one response. With `atMost`, no more than that. None if the
   * base does not exist. TARGET_FAILED if the server's own limit cuts it short.
   */
  async find(search: LdapSearch, atMost = 0): Promise<LdapEntry[]> {
    return this.#pool.run('search', true, async ({ client }) => {
      const wanted = { ...this.#wire(search), sizeLimit: atMost }
      const found = await noneWithoutBase(() => client.search(search.base, wanted))
      this.#look(found?.searchReferences)
      return this.#whole(client, (found?.searchEntries ?? []).map(readEntry))
    })
  }

  /** False if the server says that there is no such entry, as some do for one that the account may not see. */
  async exists(dn: string): Promise<boolean> {
    const search = { base: dn, scope: 'base', filter: { kind: 'and', filters: [] }, attributes: ['1.1'] } as const
    return this.#pool.run('search', true, async ({ client }) => {
      const found = await noneWithoutBase(() => client.search(dn, this.#wire(search)))
      return found !== undefined
    })
  }

  /** The names of the attributes that the entries have, without their values, which may be many. */
  async findNames(search: LdapSearch): Promise<{ readonly dn: string; readonly names: readonly string[] }[]> {
    return this.#pool.run('search', true, async ({ client }) => {
      const wanted = { ...this.#wire(search), returnAttributeValues: false }
      const found = await noneWithoutBase(() => client.search(search.base, wanted))
      this.#look(found?.searchReferences)
      return (found?.searchEntries ?? []).map(({ dn, ...rest }) => ({ dn: dnOf({ dn }), names: Object.keys(rest) }))
    })
  }

  /** For searches that may find many: page by page, up to `limit` entries. `more` means that there are others. */
  async findMany(search: LdapSearch, limit: number): Promise<{ entries: LdapEntry[]; more: boolean }> {
    return this.#pool.runAlone('search', async ({ client }) => {
      const entries: LdapEntry[] = []
      const paged = { pageSize: Math.min(this.#options.pageSize, limit + 1) }
      const pages = client.searchPaginated(search.base, { ...this.#wire(search), paged })
      for (let empty = 0; empty <= maxParts; ) {
        const page = await noneWithoutBase(() => pages.next())
        if (page === undefined || page.done === true)
          return { entries: await this.#whole(client, entries), more: false }
        this.#look(page.value.searchReferences)
        if (page.value.searchEntries.length === 0) empty++
        for (const entry of page.value.searchEntries) {
          if (entries.length === limit) return { entries: await this.#whole(client, entries), more: true }
          entries.push(readEntry(entry))
        }
      }
      throw new GatewayError('TARGET_FAILED', `${this.#options.name}: search: the pages do not end`)
    })
  }

  async add(dn: string, attributes: Iterable<readonly [string, readonly (string | Buffer)[]]>): Promise<void> {
    const list = Array.from(attributes, ([type, values]) => attribute(type, values))
    await this.#pool
      .run('add', false, ({ client }) => client.add(dn, list))
      .catch((error: unknown) => {
        throw resultCodeOf(error) === resultCodes.noSuchObject ? withoutParent(dn, error) : error
      })
  }

  async modify(dn: string, changes: readonly LdapChange[], options: WriteOptions = {}): Promise<void> {
    const list = changes.map(
      (change) => new Change({ operation: change.operation, modification: attribute(change.attribute, change.values) }),
    )
    await this.#pool.run('modify', false, ({ client }) => client.modify(dn, list, controls(options)))
  }

  async delete(dn: string, options: WriteOptions = {}): Promise<void> {
    await this.#pool.run('delete', false, ({ client }) => client.del(dn, controls(options)))
  }

  /** Under the same parent. Deletes the old name's values. */
  async rename(dn: string, rdn: string, options: WriteOptions = {}): Promise<void> {
    await this.#pool.run('rename', false, ({ client }) => client.modifyDN(dn, new WholeRdn(rdn), controls(options)))
  }

  /** Also false without such an entry or attribute. */
  async compare(dn: string, name: string, value: string): Promise<boolean> {
    return this.#pool.run('compare', true, async ({ client }) => {
      try {
        return await client.compare(dn, name, value)
      } catch (error) {
        const code = resultCodeOf(error)
        if (code === resultCodes.noSuchObject || code === resultCodes.noSuchAttribute) return false
        throw error
      }
    })
  }

  /** RFC 3062. */
  async setPassword(dn: string, password: string): Promise<void> {
    await this.#pool.run('password modify', false, ({ client }) =>
      client.exop(passwordModifyOid, passwordModifyValue(dn, password)),
    )
  }

  /** An empty password would count as no password, and let everyone in (RFC 4513 5.1.2). */
  async checkPassword(dn: string, password: string): Promise<boolean> {
    if (password === '' || dn === '') return false
    try {
      await this.#pool.runAs({ dn, password }, 'bind')
      return true
    } catch (error) {
      const code = resultCodeOf(error)
      if (code === undefined || busy.has(code)) throw error
      if (refusals.has(code)) return false
      throw error
    }
  }

  close(): void {
    this.#pool.close()
  }

  #wire({ scope, filter, attributes }: LdapSearch) {
    return {
      scope,
      filter: toWireFilter(filter),
      attributes: [...attributes],
      explicitBufferAttributes: asBytes,
      timeLimit: Math.ceil(this.#options.timeoutMillis / 1000),
    }
  }

  async #whole(client: Client, entries: readonly LdapEntry[]): Promise<LdapEntry[]> {
    const whole: LdapEntry[] = []
    for (const entry of entries) {
      const read = async (attribute: string): Promise<LdapEntry | undefined> => {
        const search = { base: entry.dn, scope: 'base', filter: { kind: 'and', filters: [] } } as const
        const wanted = this.#wire({ ...search, attributes: [attribute] })
        const part = await noneWithoutBase(() => client.search(entry.dn, wanted))
        return part?.searchEntries.map(readEntry)[0]
      }
      whole.push(await withWholeLists(entry, read))
    }
    return whole
  }

  #look(references: readonly string[] = []): void {
    if (references.length === 0 || this.#options.referrals === 'ignore') return
    throw new GatewayError('TARGET_FAILED', `${this.#options.name}: search: referrals are not followed`)
  }
}

/** The server's own text says neither that it is about the parent nor which one. */
function withoutParent(dn: string, error: unknown): GatewayError {
  const { message, cause } = asGatewayError(error)
  return new GatewayError('TARGET_FAILED', `${message}: the parent ${parentOf(dn)} is missing`, { cause })
}

/** What follows the first comma that is not escaped (RFC 4514). */
const parentOf = (dn: string): string => /^(?:[^\\,]|\\.)*,\s*(.*)$/s.exec(dn)?.[1] ?? dn

const busy = new Set([51, 52])

/** False for a wrong or missing password, a missing, locked or expired entry. */
const refusals = new Set([19, 32, 34, 48, 49, 50, 53])

/** ldapts would search for the parent's name in a text, and mistake an escaped character for its beginning. */
class WholeRdn extends DN {
  readonly #text: string

  constructor(text: string) {
    super()
    this.#text = text
  }

  override toString(): string {
    return this.#text
  }
}

function attribute(type: string, values: readonly (string | Buffer)[]): Attribute {
  return new Attribute({
    type,
    values: values.map((value) => (typeof value === 'string' ? Buffer.from(value) : value)),
  })
}

const controls = ({ while: filter }: WriteOptions): AssertionControl[] =>
  filter === undefined ? [] : [new AssertionControl(filter)]

async function noneWithoutBase<T>(search: () => Promise<T>): Promise<T | undefined> {
  try {
    return await search()
  } catch (error) {
    if (resultCodeOf(error) === resultCodes.noSuchObject) return undefined
    throw error
  }
}

/** RFC 4528: the operation happens only while the entry matches. Critical, so a server without support rejects it. */
class AssertionControl extends Control {
  readonly #filter: LdapFilter

  constructor(filter: LdapFilter) {
    super('1.3.6.1.1.12', { critical: true })
    this.#filter = filter
  }

  protected override writeControl(writer: BerWriter): void {
    const value = new BerWriter()
    toWireFilter(this.#filter).write(value)
    writer.writeBuffer(value.buffer, 0x04)
  }
}

interface Range {
  readonly attribute: string
  /** Undefined for the last part. */
  readonly end: number | undefined
}

/** A list of more parts never ends. */
const maxParts = 1000

/**
 * The entry with complete lists: Active Directory returns long ones in parts, as `member;range=0-1499` (MS-ADTS
 * 3.1.1.3.1.3.3). `read` returns the entry with another part. TARGET_FAILED if one is missing: a part never counts
 * as the whole.
 */
export async function withWholeLists(
  entry: LdapEntry,
  read: (attribute: string) => Promise<LdapEntry | undefined>,
): Promise<LdapEntry> {
  if (!entry.attributes.some(([name]) => rangeOf(name) !== undefined)) return entry
  const attributes: [string, readonly Buffer[]][] = []
  for (const [name, values] of entry.attributes) {
    const range = rangeOf(name)
    attributes.push(range === undefined ? [name, values] : [range.attribute, await whole(range, values, read)])
  }
  return { dn: entry.dn, attributes }
}

async function whole(
  { attribute, end: first }: Range,
  values: readonly Buffer[],
  read: (attribute: string) => Promise<LdapEntry | undefined>,
): Promise<readonly Buffer[]> {
  const all = [...values]
  let end = first
  for (let parts = 1; end !== undefined; parts++) {
    const entry = parts > maxParts ? undefined : await read(`${attribute};range=${end + 1}-*`)
    const part = entry?.attributes.find(([name]) => rangeOf(name)?.attribute === attribute)
    const next = part === undefined ? undefined : rangeOf(part[0])
    if (part === undefined || next === undefined || (next.end !== undefined && next.end <= end)) {
      throw new GatewayError('TARGET_FAILED', `search: the values of "${attribute}" cannot be read to their end`)
    }
    for (const value of part[1]) all.push(value)
    end = next.end
  }
  return all
}

function rangeOf(name: string): Range | undefined {
  const [, attribute, end] = /^(.+);range=\d{1,9}-(\d{1,9}|\*)$/i.exec(name) ?? []
  if (attribute === undefined) return undefined
  return { attribute, end: end === '*' ? undefined : Number(end) }
}

export const passwordModifyOid = '1.3.6.1.4.1.4203.1.11.1'

/** The value of a password modify operation (RFC 3062) for another user. */
export function passwordModifyValue(dn: string, password: string): Buffer {
  const writer = new BerWriter()
  writer.startSequence()
  writer.writeString(dn, 0x80)
  writer.writeString(password, 0x82)
  writer.endSequence()
  return writer.buffer
}

/** The format of Active Directory's `unicodePwd`: the password in quotation marks, in UTF-16. */
export const unicodePassword = (password: string): Buffer => Buffer.from(`"${password}"`, 'utf16le')
