import { deactivationAttributes } from '#identity/attributes.ts'
import type { Directory, DirectoryEntry, DirectoryPage } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { groupNamesOf } from '#identity/group-names.ts'
import { entryOf, type Identity, isLoginOnly, storedIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'

const everywhere = Dn.parse('')
const anything: Filter = { kind: 'present', attribute: 'objectClass' }
/** The most users with one login. */
const maxNamesakes = 20

/** Whether the text is the identity of an entry rather than a login or a name. */
export const isEntryId = (text: string): boolean => entryOf(storedIdentity(text)) !== undefined

type OwnEntry =
  | { readonly kind: 'own'; readonly entry: DirectoryEntry }
  /** `anothers`: the entry of another user has the name. */
  | { readonly kind: 'none' | 'anothers' }

/** The users of the virtual directory, by the attribute that the portal identifies them by. */
export class People {
  readonly #directory: Directory
  readonly #loginAttribute: string
  readonly #nameAttribute: string

  constructor(directory: Directory, loginAttribute: string, nameAttribute: string) {
    this.#directory = directory
    this.#loginAttribute = loginAttribute
    this.#nameAttribute = nameAttribute
  }

  /** The caller's entry. The name of a caller without one may be the name of another user's entry. */
  async ownEntry({ dn, identity }: Pick<Subject, 'dn' | 'identity'>): Promise<OwnEntry> {
    const [found] = await this.#directory.search({ base: dn, scope: 'base', filter: anything, limit: 1 })
    if (found === undefined) return { kind: 'none' }
    return found.identity === identity ? { kind: 'own', entry: found } : { kind: 'anothers' }
  }

  /** The user with this identity or, if it isn't one, with this login, as `byLogin` finds it. */
  async byIdOrLogin(id: string): Promise<DirectoryEntry | undefined> {
    if (!isEntryId(id)) return await this.byLogin(id)
    const entry = await this.#directory.entry(storedIdentity(id))
    return entry !== undefined && this.isUser(entry) ? entry : undefined
  }

  /** Throws CONFLICT for a login that several users have. */
  async byLogin(login: string): Promise<DirectoryEntry | undefined> {
    const filter: Filter = { kind: 'equal', attribute: this.#loginAttribute, value: login }
    const [found, another] = await this.#directory.search({ base: everywhere, scope: 'sub', filter, limit: 2 })
    if (another === undefined) return found
    throw new GatewayError('CONFLICT', `several entries of the directory have the login "${login}"`)
  }

  /**
   * The user that was stored with this login and identity; undefined if the entry is gone, even if another user has the
   * login by now. Without an identity, as `byLogin` finds it.
   */
  async byIdentity(login: string, identity: Identity | undefined): Promise<DirectoryEntry | undefined> {
    if (identity === undefined || isLoginOnly(identity)) return await this.byLogin(login)
    const filter: Filter = { kind: 'equal', attribute: this.#loginAttribute, value: login }
    const named = await this.#directory.search({ base: everywhere, scope: 'sub', filter, limit: maxNamesakes })
    return named.find((entry) => entry.identity === identity) ?? (await this.#directory.entry(identity))
  }

  /** The login as the directory spells it. */
  loginIn({ attributes }: DirectoryEntry, login: string): string {
    return attributes.first(this.#loginAttribute) ?? login
  }

  isUser({ attributes }: DirectoryEntry): boolean {
    return attributes.has(this.#loginAttribute)
  }

  /** The name to show; undefined if the entry has none. */
  displayNameIn({ attributes }: DirectoryEntry): string | undefined {
    return attributes.first(this.#nameAttribute)
  }

  /** Users whose login, display name or mail address starts with the text, in the order of the directory. */
  async page(text: string, page: { readonly after?: string; readonly limit: number }): Promise<DirectoryPage> {
    const searched = [this.#loginAttribute, this.#nameAttribute, 'mail']
    const isUser: Filter = { kind: 'present', attribute: this.#loginAttribute }
    const starts = searched.map((attribute): Filter => ({ kind: 'substring', attribute, initial: text, any: [] }))
    return await this.#directory.page({
      base: everywhere,
      scope: 'sub',
      filter: text === '' ? isUser : { kind: 'and', filters: [isUser, { kind: 'or', filters: starts }] },
      attributes: [...searched, ...deactivationAttributes],
      ...page,
    })
  }

  /** The names of the groups that the entry is a member of, sorted. */
  groupsOf(dn: Dn): Promise<string[]> {
    return groupNamesOf(dn, this.#directory)
  }

  /** Users whose login or display name contains the text. */
  async find(text: string, limit: number): Promise<{ readonly uid: string; readonly displayName: string }[]> {
    const filters = [this.#loginAttribute, this.#nameAttribute].map(
      (attribute) => ({ kind: 'substring', attribute, any: [text] }) as const,
    )
    const found = await this.#directory.search({
      base: everywhere,
      scope: 'sub',
      filter: {
        kind: 'and',
        filters: [
          { kind: 'present', attribute: this.#loginAttribute },
          { kind: 'or', filters },
        ],
      },
      limit,
      attributes: [this.#loginAttribute, this.#nameAttribute],
    })
    return found.flatMap(({ attributes }) => {
      const uid = attributes.first(this.#loginAttribute)
      return uid === undefined ? [] : [{ uid, displayName: attributes.first(this.#nameAttribute) ?? uid }]
    })
  }
}
