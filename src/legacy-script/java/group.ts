import { ArrayList } from './array-list.ts'
import { HashMap } from './hash-map.ts'
import { optionalText } from './java-value.ts'

/** com.tremolosecurity.provisioning.core.Group. */
export class Group {
  #name: string | null
  #description: string | null
  #id: string | null
  readonly #members = new ArrayList()
  readonly #attributes = new HashMap()

  constructor(name?: unknown, description?: unknown, id?: unknown) {
    this.#name = optionalText(name)
    this.#description = optionalText(description)
    this.#id = optionalText(id)
  }

  getName(): string | null {
    return this.#name
  }

  setName(name: unknown): void {
    this.#name = optionalText(name)
  }

  getDescription(): string | null {
    return this.#description
  }

  setDescription(description: unknown): void {
    this.#description = optionalText(description)
  }

  getId(): string | null {
    return this.#id
  }

  setId(id: unknown): void {
    this.#id = optionalText(id)
  }

  getMembers(): ArrayList {
    return this.#members
  }

  /** Of `Attribute` by name. */
  getAttributes(): HashMap {
    return this.#attributes
  }
}
