import type { ForesightNotes } from '#engine/foresight/foresight-notes.ts'
import { maskHeld } from '#engine/foresight/masked-secrets.ts'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SyncOptions, Target, TargetRequest } from '#sdk/target/target.ts'
import { sameLogin, unionOfGroups, withoutGroups } from '#sdk/workflow/workflow-user.ts'

/** What is known of one login at the target. */
interface Page {
  /** Absent: there is no such user, or there would be none. */
  user: User | undefined
  /** The login by which the target knows the user still. */
  readonly login: string
  /** The attributes that the target was asked for, in small letters; undefined where it need not be asked again. */
  asked: ReadonlySet<string> | undefined
}

export interface PaperParts {
  readonly name: string
  readonly notes: ForesightNotes
  /** Counts a question to the outside; throws when there were too many. */
  readonly ask: () => void
}

/** The users of a target on paper. The target itself is read, once for the same question, and never written. */
export class PaperUsers implements Target {
  readonly #target: Target
  readonly #parts: PaperParts
  readonly #pages = new Map<string, Page>()

  constructor(target: Target, parts: PaperParts) {
    this.#target = target
    this.#parts = parts
  }

  async findUser(userID: string, attributes: readonly string[], request: TargetRequest): Promise<User | undefined> {
    const page = await this.#page(userID, attributes, request)
    return page.user && { ...page.user, attributes: page.user.attributes.pick(attributes) }
  }

  async createUser(user: User, attributes: readonly string[], request: TargetRequest): Promise<void> {
    const page = await this.#page(user.userID, attributes, request)
    if (page.user !== undefined) throw new GatewayError('CONFLICT', `"${user.userID}" is there already`)
    this.#note('create', user.userID, {
      attributes: [...user.attributes].map(([name, values]) => [name, [], values]),
      joins: user.groups,
    })
    this.#put(user.userID, { ...user, attributes: user.attributes.clone() })
  }

  async syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const page = await this.#page(user.userID, options.attributes, request)
    const { user: found } = page
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no "${user.userID}"`)
    const { addOnly, keepGroups, newUserID } = options
    const attributes = found.attributes.clone()
    const changes = options.attributes.map((name) => {
      const before = found.attributes.values(name)
      const wanted = user.attributes.values(name)
      const after = addOnly ? [...new Set([...before, ...wanted])] : wanted
      attributes.set(name, after)
      return [name, before, after] as const
    })
    const joins = keepGroups ? [] : withoutGroups(user.groups, found.groups)
    const leaves = keepGroups || addOnly ? [] : withoutGroups(found.groups, user.groups)
    const renamed = newUserID === undefined || newUserID === found.userID ? undefined : newUserID
    this.#note('change', found.userID, {
      attributes: changes,
      joins,
      leaves,
      ...(renamed === undefined ? {} : { newName: renamed }),
    })
    const groups = unionOfGroups(withoutGroups(found.groups, leaves), joins)
    const { groupIds: _, ...rest } = found
    if (renamed !== undefined && !sameLogin(renamed, found.userID)) this.#put(found.userID, undefined)
    const userID = renamed ?? found.userID
    this.#put(userID, { ...rest, userID, attributes, groups }, page)
  }

  async deleteUser({ userID }: User, request: TargetRequest): Promise<void> {
    const { user } = await this.#page(userID, [], request)
    if (user === undefined) return
    this.#note('delete', user.userID, { attributes: [], leaves: user.groups })
    this.#put(userID, undefined)
  }

  async setUserPassword({ userID }: User): Promise<void> {
    this.#note('change', userID, { attributes: [['password', [], ['set']]] })
  }

  #note(
    action: 'create' | 'change' | 'delete',
    name: string,
    change: Pick<Parameters<ForesightNotes['addEntry']>[0], 'attributes' | 'joins' | 'leaves' | 'newName'>,
  ): void {
    this.#parts.notes.addEntry({ kind: 'user', action, target: this.#parts.name, name, ...change })
  }

  #put(userID: string, user: User | undefined, read?: Page): void {
    this.#pages.set(userID.toLowerCase(), { user, login: read?.login ?? userID, asked: read?.asked })
  }

  /** With these attributes known. What was written on paper stays, whatever the target still holds. */
  async #page(userID: string, attributes: readonly string[], request: TargetRequest): Promise<Page> {
    const key = userID.toLowerCase()
    const known = this.#pages.get(key)
    const asked = known?.asked
    const missing = attributes.filter((name) => asked?.has(name.toLowerCase()) === false)
    if (known !== undefined && missing.length === 0) return known
    this.#parts.ask()
    const login = known?.login ?? userID
    const read = await this.#target.findUser(login, known === undefined ? attributes : missing, request)
    const names = new Set([...(asked ?? []), ...attributes.map((name) => name.toLowerCase())])
    const user = joined(known?.user, read, missing)
    const page: Page = { user, login, asked: read === undefined ? undefined : names }
    this.#pages.set(key, page)
    return page
  }
}

/** What is known, with the attributes that were missing. */
function joined(known: User | undefined, read: User | undefined, missing: readonly string[]): User | undefined {
  const attributes = maskHeld(read?.attributes ?? new Attributes())
  if (known === undefined) return read && { ...read, attributes }
  const all = known.attributes.clone()
  for (const name of missing) all.set(name, attributes.values(name))
  return { ...known, attributes: all }
}
