import type { PaperParts } from '#engine/foresight/paper-users.ts'
import { Attributes } from '#identity/attributes.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { CreateOptions, GroupChange, GroupTarget, MemberGroupChange } from '#sdk/target/target.ts'

type Values = Readonly<Record<string, readonly string[]>>

/** The groups of a target on paper. The target itself is asked once for each, and never written. */
export class PaperGroups {
  readonly #target: GroupTarget
  readonly #parts: PaperParts
  readonly #known = new Map<string, Group | undefined>()

  constructor(target: GroupTarget, parts: PaperParts) {
    this.#target = target
    this.#parts = parts
  }

  async findGroup(name: string): Promise<Group | undefined> {
    const key = name.toLowerCase()
    if (!this.#known.has(key)) {
      this.#parts.ask()
      this.#known.set(key, await this.#target.findGroup(name))
    }
    return this.#known.get(key)
  }

  async createGroup(name: string, attributes: Values, _: unknown, options: CreateOptions = {}): Promise<void> {
    const found = await this.findGroup(name)
    if (found !== undefined && options.mustBeNew === true) {
      throw new GatewayError('CONFLICT', `there is a group "${name}" already`)
    }
    if (found === undefined) {
      this.#note('create', name, Object.entries(attributes), () => [])
      this.#put(name, { id: name, name, members: [], attributes: Attributes.from(attributes) })
    } else if (groupChanges(found, found.name, Object.entries(attributes)).length > 0) {
      throw new GatewayError('CONFLICT', `there is another group "${name}" already`)
    }
  }

  async updateGroup(name: string, { newName, attributes = {} }: GroupChange): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${name}"`)
    const wanted = Object.entries(attributes)
    this.#note('change', found.name, wanted, (attribute, values) => heldBy(found, attribute, values), newName)
    const changed = (found.attributes ?? new Attributes()).clone()
    for (const [attribute, values] of wanted) changed.set(attribute, values)
    const { description: _, ...rest } = found
    if (newName !== undefined) this.#put(name, undefined)
    this.#put(newName ?? name, { ...rest, name: newName ?? found.name, attributes: changed })
  }

  async deleteGroup(name: string): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) return
    this.#note('delete', found.name, [], () => [])
    this.#put(name, undefined)
  }

  /** Who the members are is not read for a preview, so what is asked for counts as a change. */
  async changeMemberGroups(name: string, { add, remove }: MemberGroupChange): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${name}"`)
    this.#note('change', found.name, [['members', add.map((group) => group.name)]], () =>
      remove.map((group) => group.name),
    )
  }

  #put(name: string, group: Group | undefined): void {
    this.#known.set(name.toLowerCase(), group)
  }

  #note(
    action: 'create' | 'change' | 'delete',
    name: string,
    wanted: readonly (readonly [string, readonly string[]])[],
    held: (attribute: string, values: readonly string[]) => readonly string[],
    newName?: string,
  ): void {
    this.#parts.notes.addEntry({
      kind: 'group',
      action,
      target: this.#parts.name,
      name,
      attributes: wanted.map(([attribute, values]) => [attribute, held(attribute, values), values]),
      ...(newName === undefined || newName === name ? {} : { newName }),
    })
  }
}

/** Attributes that the target does not tell count as they should be. */
function heldBy({ attributes, description }: Group, name: string, values: readonly string[]): readonly string[] {
  if (name.toLowerCase() === 'description' && description !== undefined) return [description]
  return attributes === undefined ? values : attributes.values(name)
}
