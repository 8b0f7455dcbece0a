import { JavaCollection } from './collection.ts'
import { type ForeignProperties, foreignProperties } from './foreign-object.ts'
import { IndexOutOfBoundsException } from './java-exception.ts'
import { itemsOf, javaEquals, javaFunction, javaText, javaValue } from './java-value.ts'

/** java.util.ArrayList. JavaScript may also index it, ask for its `length`, and use the methods of arrays. */
export class ArrayList extends JavaCollection {
  #items: unknown[] = []

  /** Of a collection, or empty; a capacity is passed over. */
  constructor(source?: unknown) {
    super()
    if (source !== undefined && typeof source !== 'number') this.#items = itemsOf(source)
  }

  override add(item: unknown, inserted?: unknown): boolean {
    if (inserted === undefined) this.#items.push(javaValue(item))
    else this.#items.splice(this.#position(item, this.#items.length + 1), 0, javaValue(inserted))
    return true
  }

  get(position: unknown): unknown {
    return this.#items[this.#position(position)]
  }

  set(position: unknown, item: unknown): unknown {
    const at = this.#position(position)
    const before = this.#items[at]
    this.#items[at] = javaValue(item)
    return before
  }

  /** A number is a position, anything else an item. */
  remove(item: unknown): unknown {
    if (typeof item === 'number') return this.#items.splice(this.#position(item), 1)[0]
    const at = this.indexOf(item)
    if (at >= 0) this.#items.splice(at, 1)
    return at >= 0
  }

  indexOf(item: unknown): number {
    return this.#items.findIndex((one) => javaEquals(one, item))
  }

  lastIndexOf(item: unknown): number {
    return this.#items.findLastIndex((one) => javaEquals(one, item))
  }

  override contains(item: unknown): boolean {
    return this.indexOf(item) >= 0
  }

  subList(from: unknown, to: unknown): ArrayList {
    const end = this.#position(to, this.#items.length + 1)
    return new ArrayList(this.#items.slice(this.#position(from, end + 1), end))
  }

  /** By the function, or by natural order when there is none. */
  sort(comparator?: unknown): void {
    const plain = javaValue(comparator ?? null)
    const compare = plain === null ? undefined : javaFunction(plain)
    this.#items.sort(compare === undefined ? natural : (a, b) => Number(compare(a, b)))
  }

  override size(): number {
    return this.#items.length
  }

  override clear(): void {
    this.#items = []
  }

  override toArray(): unknown[] {
    return [...this.#items]
  }

  equals(other: unknown): boolean {
    if (!(other instanceof ArrayList)) return false
    const items = other.toArray()
    return items.length === this.#items.length && items.every((item, i) => javaEquals(this.#items[i], item))
  }

  protected override removeItem(_item: unknown, position: number): void {
    this.#items.splice(position, 1)
  }

  #position(value: unknown, end = this.#items.length): number {
    const at = javaValue(value)
    if (typeof at === 'number' && Number.isInteger(at) && at >= 0 && at < end) return at
    throw new IndexOutOfBoundsException(`Index ${javaText(value)} out of bounds for length ${this.#items.length}`)
  }

  override [foreignProperties](): ForeignProperties {
    return {
      read: (name) => {
        if (name === 'length') return this.#items.length
        if (isIndex(name)) return this.#items[Number(name)]
        return Object.hasOwn(Array.prototype, name) ? Reflect.get(Array.prototype, name) : undefined
      },
      write: (name, value) => {
        if (name === 'length') this.#items.length = Number(value)
        else if (isIndex(name)) this.#items[Number(name)] = javaValue(value)
        else return false
        return true
      },
      remove: () => false,
      names: () => Object.keys(this.#items),
    }
  }
}

const isIndex = (name: string): boolean => /^(?:0|[1-9]\d{0,8})$/.test(name)

function natural(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [x, y] = [javaText(a), javaText(b)]
  return x < y ? -1 : x > y ? 1 : 0
}
