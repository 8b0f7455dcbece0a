import type { MemberType } from '#protocols/scim/patch/member-change.ts'

const groupMark = 'group:'
const userMark = 'user:'

/**
 * How ids of the store are shown as ids of SCIM, which no two resources share. Where a user and a group of the store may
 * have the same id, groups are shown with a mark before it, and so are the few users whose ids look like marked ones.
 */
export class ResourceIds {
  readonly #marks: boolean

  constructor(idsAreUnique: boolean) {
    this.#marks = !idsAreUnique
  }

  /** Ids of the store aren't those of SCIM, so a store can't be asked for a part of them. */
  get areMarked(): boolean {
    return this.#marks
  }

  ofGroup(stored: string): string {
    return this.#marks ? groupMark + stored : stored
  }

  ofUser(stored: string): string {
    return this.#marks && this.typeOf(stored) !== undefined ? userMark + stored : stored
  }

  /** The ids of the store that this may mean, the likelier first. Unmarked ids of groups were given out in the past. */
  storedGroup(id: string): readonly string[] {
    return this.#marks && id.startsWith(groupMark) ? [id.slice(groupMark.length), id] : [id]
  }

  storedUser(id: string): readonly string[] {
    return this.#marks && id.startsWith(userMark) ? [id.slice(userMark.length), id] : [id]
  }

  /** What the mark says; undefined without one. */
  typeOf(id: string): MemberType | undefined {
    if (!this.#marks) return undefined
    return id.startsWith(groupMark) ? 'Group' : id.startsWith(userMark) ? 'User' : undefined
  }

  /** The one form of an id of a group that may be given in two. */
  groupForm(id: string): string {
    return this.ofGroup(this.storedGroup(id)[0] ?? id)
  }
}
