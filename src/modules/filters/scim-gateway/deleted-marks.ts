import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import type { FoundUser } from './lookups.ts'

/**
 * Marks of users whom a delete workflow deactivated and did not delete. Clients were told that such a user is gone, so
 * the gateway answers as if it were, for as long as it is inactive.
 */
export interface DeletedMarks {
  has(found: FoundUser): Promise<boolean>
  /** The user as the delete workflow is to get it. */
  marked(user: User): User
  /** After the delete workflow. Throws WORKFLOW_FAILED when the mark isn't set. */
  set(found: FoundUser): Promise<void>
  /** Attributes that the user workflow is to clear, so that the user has no mark any more. */
  clearedFor(user: User): readonly string[]
  /** To be called beside the user workflow. */
  remove(id: string): Promise<void>
  /** True of the marked users; undefined when there are none, `many` when there are more than a filter can name. */
  filter(idAttribute: string): Promise<Filter | 'many' | undefined>
  /** The filter is another one with every mark, and `among` knows the marked users. */
  readonly filterVaries: boolean
  /** Of these users, the ones that may be marked. */
  among<T extends { readonly id: string }>(users: readonly T[]): Promise<readonly T[]>
}

/** How many users a filter names: half of the clauses that stores take, so that the client's own filter fits beside. */
export const maxNamed = 100
const marksPage = 1000

/**
 * Marks in Gatehouse's own database, under what the gateway looks users up in: they survive restarts, hold for every
 * process, and for every gateway on the same target. There is a user of the directory for each mark. Its login is a
 * hash, since ids may be longer than logins, and letter case counts in them.
 */
export class StoredMarks implements DeletedMarks {
  readonly filterVaries = true
  readonly #marks: Pick<UserDirectory, 'findByLogin' | 'searchUsers' | 'create' | 'delete'>
  readonly #clock: Clock

  constructor(marks: Pick<UserDirectory, 'findByLogin' | 'searchUsers' | 'create' | 'delete'>, clock: Clock) {
    this.#marks = marks
    this.#clock = clock
  }

  async has({ id }: FoundUser): Promise<boolean> {
    return (await this.#marks.findByLogin(secretHash(id))) !== undefined
  }

  marked(user: User): User {
    return user
  }

  async set({ id, user }: FoundUser): Promise<void> {
    const deleted = this.#clock().toISOString()
    const attributes = Attributes.from({ id: [id], login: [user.userID], deleted: [deleted] })
    try {
      await this.#marks.create({ userID: secretHash(id), attributes, groups: [] })
    } catch (error) {
      // Another process has set the same mark.
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
    }
  }

  clearedFor(): readonly string[] {
    return []
  }

  async remove(id: string): Promise<void> {
    await this.#marks.delete(secretHash(id))
  }

  async filter(idAttribute: string): Promise<Filter | 'many' | undefined> {
    const { items, total } = await this.#marks.searchUsers({ offset: 0, limit: maxNamed })
    if (total === 0) return undefined
    if (total > maxNamed) return 'many'
    const filters = items.map(({ attributes }): Filter => {
      return { kind: 'equal', attribute: idAttribute, value: attributes.first('id') ?? '', caseExact: true }
    })
    return { kind: 'or', filters }
  }

  async among<T extends { readonly id: string }>(users: readonly T[]): Promise<readonly T[]> {
    if (users.length === 0) return []
    const ids = new Set<string>()
    let place: { readonly after?: string } | undefined = {}
    while (place !== undefined) {
      const { items, next } = await this.#marks.searchUsers({ offset: 0, limit: marksPage, ...place })
      for (const { attributes } of items) ids.add(attributes.first('id') ?? '')
      place = next === undefined ? undefined : { after: next }
    }
    return ids.size === 0 ? [] : users.filter(({ id }) => ids.has(id))
  }
}

/** Marks in an attribute of the target (`deletedAttributeName`), which the workflows write. Any number of them. */
export class AttributeMarks implements DeletedMarks {
  readonly filterVaries = false
  readonly #attribute: string
  readonly #clock: Clock

  constructor(attribute: string, clock: Clock) {
    this.#attribute = attribute
    this.#clock = clock
  }

  async has({ user }: FoundUser): Promise<boolean> {
    return user.attributes.has(this.#attribute)
  }

  marked(user: User): User {
    const attributes = user.attributes.clone()
    attributes.set(this.#attribute, [this.#clock().toISOString()])
    return { ...user, attributes }
  }

  async set({ user }: FoundUser): Promise<void> {
    if (user.attributes.has(this.#attribute)) return
    const text = `the delete workflow deactivated the user and did not write "${this.#attribute}"`
    throw new GatewayError('WORKFLOW_FAILED', text, {
      publicText:
        'The delete workflow deactivated the user, but did not write the attribute of deletedAttributeName, so the user would still be shown.',
    })
  }

  clearedFor({ attributes }: User): readonly string[] {
    return attributes.has(this.#attribute) ? [this.#attribute] : []
  }

  async remove(): Promise<void> {}

  async filter(): Promise<Filter | undefined> {
    return { kind: 'present', attribute: this.#attribute }
  }

  /** Members are read without their attributes, so the delete workflow has to end the memberships. */
  async among<T extends { readonly id: string }>(): Promise<readonly T[]> {
    return []
  }
}
