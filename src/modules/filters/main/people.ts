import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'

const everywhere = Dn.parse('')
const anything: Filter = { kind: 'present', attribute: 'objectClass' }
const maxGroups = 1_000
/** Names per search. */
const chunk = 100

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

  /** Throws CONFLICT for a login that several users have. */
  async byLogin(login: string): Promise<DirectoryEntry | undefined> {
    const filter: Filter = { kind: 'equal', attribute: this.#loginAttribute, value: login }
    const [found, another] = await this.#directory.search({ base: everywhere, scope: 'sub', filter, limit: 2 })
    if (another === undefined) return found
    throw new GatewayError('CONFLICT', `several entries of the directory have the login "${login}"`)
  }

  /** The login as the directory spells it. */
  loginIn({ attributes }: DirectoryEntry, login: string): string {
    return attributes.first(this.#loginAttribute) ?? login
  }

  /** The names of the groups that the entry is a member of, sorted. */
  async groupsOf(dn: Dn): Promise<string[]> {
    const value = dn.toString()
    const filter: Filter = {
      kind: 'or',
      filters: ['member', 'uniqueMember'].map((attribute) => ({ kind: 'equal', attribute, value })),
    }
    const found = await this.#directory.search({
      base: everywhere,
      scope: 'sub',
      filter,
      limit: maxGroups,
      attributes: ['cn'],
    })
    return [...new Set(found.flatMap(({ attributes }) => attributes.first('cn') ?? []))].sort()
  }

  /** Display names; the login for users that are not in the directory. Takes a few searches for any number. */
  async displayNames(logins: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const wanted = [...new Set(logins)]
    const names = new Map<string, string>()
    for (let done = 0; done < wanted.length; done += chunk) {
      const some = wanted.slice(done, done + chunk)
      const filters = some.map((value) => ({ kind: 'equal', attribute: this.#loginAttribute, value }) as const)
      const found = await this.#directory.search({
        base: everywhere,
        scope: 'sub',
        filter: { kind: 'or', filters },
        limit: chunk * 2,
        attributes: [this.#loginAttribute, this.#nameAttribute],
      })
      for (const { attributes } of found) {
        const login = attributes.first(this.#loginAttribute)
        const name = attributes.first(this.#nameAttribute)
        if (login !== undefined && name !== undefined) names.set(login.toLowerCase(), name)
      }
    }
    return new Map(wanted.map((login) => [login, names.get(login.toLowerCase()) ?? login]))
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
