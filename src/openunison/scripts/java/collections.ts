import { IllegalStateException, IndexOutOfBoundsException, NoSuchElementException } from './java-exception.ts'
import { itemsOf, javaEquals, javaFunction, javaText, javaValue } from './java-value.ts'

/** How JavaScript reads and writes the properties of a collection, besides its methods. */
export interface ForeignProperties {
  /** Undefined if there is none of that name. */
  read(name: string): unknown
  /** False if it can't be written. */
  write(name: string, value: unknown): boolean
  remove(name: string): boolean
  names(): string[]
}

export const foreignProperties = Symbol('foreign properties')

interface Foreign {
  [foreignProperties](): ForeignProperties
}

/**
 * A Java collection as JavaScript sees it: its methods first, and then the result of `foreignProperties`. Classes
 * that extend it find their private fields on the proxy itself.
 */
export class ForeignObject {
  constructor() {
    const proxy = new Proxy(this, handler)
    proxies.set(this, proxy)
    // biome-ignore lint/correctness/noConstructorReturn: the proxy takes the place of the object
    return proxy
  }
}

const proxies = new WeakMap<ForeignObject, ForeignObject>()

const propertiesOf = (target: ForeignObject): ForeignProperties => (proxies.get(target) as Foreign)[foreignProperties]()

const isOwn = (target: ForeignObject, name: string | symbol): name is symbol =>
  typeof name === 'symbol' || name in target

const handler: ProxyHandler<ForeignObject> = {
  get: (target, name, receiver) =>
    isOwn(target, name) ? Reflect.get(target, name, receiver) : propertiesOf(target).read(name as string),
  set: (target, name, value) => !isOwn(target, name) && propertiesOf(target).write(name as string, value),
  has: (target, name) => isOwn(target, name) || propertiesOf(target).read(name as string) !== undefined,
  deleteProperty: (target, name) => !isOwn(target, name) && propertiesOf(target).remove(name as string),
  ownKeys: (target) => propertiesOf(target).names(),
  getOwnPropertyDescriptor: (target, name) => {
    if (typeof name === 'symbol') return undefined
    const properties = propertiesOf(target)
    if (!properties.names().includes(name)) return undefined
    return { value: properties.read(name), writable: true, enumerable: true, configurable: true }
  },
  defineProperty: () => false,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
}

/** java.util.Iterator; `for…of` iterates over the rest. */
export class JavaIterator {
  readonly #items: readonly unknown[]
  readonly #remove: (item: unknown, position: number) => void
  #next = 0
  #removed = 0
  #canRemove = false

  constructor(items: readonly unknown[], remove: (item: unknown, position: number) => void) {
    this.#items = items
    this.#remove = remove
  }

  hasNext(): boolean {
    return this.#next < this.#items.length
  }

  next(): unknown {
    if (!this.hasNext()) throw new NoSuchElementException()
    this.#canRemove = true
    return this.#items[this.#next++]
  }

  remove(): void {
    if (!this.#canRemove) throw new IllegalStateException()
    this.#canRemove = false
    const position = this.#next - 1 - this.#removed++
    this.#remove(this.#items[this.#next - 1], position)
  }

  *[Symbol.iterator](): Generator<unknown> {
    while (this.hasNext()) yield this.next()
  }
}

/** java.util.Collection: what lists and sets have in common. */
export abstract class JavaCollection extends ForeignObject {
  abstract add(item: unknown): boolean
  abstract contains(item: unknown): boolean
  abstract size(): number
  abstract clear(): void
  /** A copy. */
  abstract toArray(): unknown[]
  protected abstract removeItem(item: unknown, position: number): void

  addAll(collection: unknown): boolean {
    let changed = false
    for (const item of itemsOf(collection)) changed = this.add(item) || changed
    return changed
  }

  containsAll(collection: unknown): boolean {
    return itemsOf(collection).every((item) => this.contains(item))
  }

  removeAll(collection: unknown): boolean {
    const gone = itemsOf(collection)
    return this.removeIf((item: unknown) => gone.some((one) => javaEquals(one, item)))
  }

  retainAll(collection: unknown): boolean {
    const kept = itemsOf(collection)
    return this.removeIf((item: unknown) => !kept.some((one) => javaEquals(one, item)))
  }

  removeIf(test: unknown): boolean {
    const fails = javaFunction(test)
    const before = this.toArray()
    const kept = before.filter((item) => fails(item) !== true)
    if (kept.length === before.length) return false
    this.clear()
    this.addAll(kept)
    return true
  }

  isEmpty(): boolean {
    return this.size() === 0
  }

  iterator(): JavaIterator {
    return new JavaIterator(this.toArray(), (item, position) => this.removeItem(item, position))
  }

  forEach(action: unknown): void {
    const call = javaFunction(action)
    for (const item of this.toArray()) call(item)
  }

  override toString(): string {
    return `[${this.toArray().map(javaText).join(', ')}]`
  }

  toJSON(): unknown[] {
    return this.toArray()
  }

  [Symbol.iterator](): Iterator<unknown> {
    return this.toArray()[Symbol.iterator]()
  }

  [foreignProperties](): ForeignProperties {
    return noProperties
  }
}

const noProperties: ForeignProperties = {
  read: () => undefined,
  write: () => false,
  remove: () => false,
  names: () => [],
}

/** java.util.ArrayList. JavaScript may also index it, read its `length`, and use the methods of arrays. */
export class ArrayList extends JavaCollection {
  #items: unknown[] = []

  /** From a collection, or empty; a capacity is ignored. */
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

  /** By the function, or by natural order without one. */
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
