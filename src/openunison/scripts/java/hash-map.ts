import { ArrayList, ForeignObject, type ForeignProperties, foreignProperties, JavaCollection } from './collections.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { itemsOf, javaEquals, javaFunction, javaKey, javaText, javaValue } from './java-value.ts'

/** java.util.HashMap; iterates in insertion order. Its views are copies. */
export class HashMap extends ForeignObject {
  readonly #entries = new Map<unknown, MapEntry>()

  constructor(source?: unknown) {
    super()
    if (source !== undefined && typeof source !== 'number') this.putAll(source)
  }

  get(key: unknown): unknown {
    return this.#entries.get(javaKey(key))?.getValue() ?? null
  }

  getOrDefault(key: unknown, fallback: unknown): unknown {
    return this.containsKey(key) ? this.get(key) : javaValue(fallback)
  }

  put(key: unknown, value: unknown): unknown {
    const before = this.get(key)
    const entry = this.#entries.get(javaKey(key))
    if (entry === undefined) this.#entries.set(javaKey(key), new MapEntry(javaValue(key), value))
    else entry.setValue(value)
    return before
  }

  putIfAbsent(key: unknown, value: unknown): unknown {
    const before = this.get(key)
    if (before === null) this.put(key, value)
    return before
  }

  computeIfAbsent(key: unknown, make: unknown): unknown {
    if (this.get(key) === null) this.put(key, javaFunction(make)(key))
    return this.get(key)
  }

  /** From another map, or from a JavaScript object. */
  putAll(source: unknown): void {
    if (source instanceof HashMap)
      for (const entry of source.#entries.values()) this.put(entry.getKey(), entry.getValue())
    else if (typeof source === 'object' && source !== null) {
      for (const [key, value] of Object.entries(source)) this.put(key, value)
    } else throw new IllegalArgumentException('a map is needed')
  }

  containsKey(key: unknown): boolean {
    return this.#entries.has(javaKey(key))
  }

  containsValue(value: unknown): boolean {
    return this.#all().some((entry) => javaEquals(entry.getValue(), value))
  }

  remove(key: unknown): unknown {
    const before = this.get(key)
    this.#entries.delete(javaKey(key))
    return before
  }

  size(): number {
    return this.#entries.size
  }

  isEmpty(): boolean {
    return this.#entries.size === 0
  }

  clear(): void {
    this.#entries.clear()
  }

  keySet(): HashSet {
    return new HashSet(this.#all().map((entry) => entry.getKey()))
  }

  values(): ArrayList {
    return new ArrayList(this.#all().map((entry) => entry.getValue()))
  }

  entrySet(): HashSet {
    return new HashSet(this.#all())
  }

  forEach(action: unknown): void {
    const call = javaFunction(action)
    for (const entry of this.#all()) call(entry.getKey(), entry.getValue())
  }

  equals(other: unknown): boolean {
    if (!(other instanceof HashMap) || other.size() !== this.size()) return false
    return this.#all().every((e) => other.containsKey(e.getKey()) && javaEquals(e.getValue(), other.get(e.getKey())))
  }

  override toString(): string {
    return `{${this.#all().join(', ')}}`
  }

  toJSON(): object {
    return Object.fromEntries(this.#all().map((entry) => [javaText(entry.getKey()), entry.getValue()]))
  }

  *[Symbol.iterator](): Generator<[unknown, unknown]> {
    for (const entry of this.#all()) yield [entry.getKey(), entry.getValue()]
  }

  #all(): MapEntry[] {
    return [...this.#entries.values()]
  }

  [foreignProperties](): ForeignProperties {
    return {
      read: (name) => this.#entries.get(name)?.getValue(),
      write: (name, value) => {
        this.put(name, value)
        return true
      },
      remove: (name) => this.#entries.delete(name),
      names: () =>
        this.#all().flatMap((entry) => (typeof entry.getKey() === 'string' ? [entry.getKey() as string] : [])),
    }
  }
}

/** java.util.Map.Entry, backed by the map. */
export class MapEntry {
  readonly #key: unknown
  #value: unknown

  constructor(key: unknown, value: unknown) {
    this.#key = key
    this.#value = javaValue(value)
  }

  getKey(): unknown {
    return this.#key
  }

  getValue(): unknown {
    return this.#value
  }

  setValue(value: unknown): unknown {
    const before = this.#value
    this.#value = javaValue(value)
    return before
  }

  toString(): string {
    return `${javaText(this.#key)}=${javaText(this.#value)}`
  }
}

/** java.util.HashSet; iterates in insertion order. */
export class HashSet extends JavaCollection {
  readonly #items = new Map<unknown, unknown>()

  constructor(source?: unknown) {
    super()
    if (source !== undefined && typeof source !== 'number') for (const item of itemsOf(source)) this.add(item)
  }

  override add(item: unknown): boolean {
    const key = javaKey(item)
    if (this.#items.has(key)) return false
    this.#items.set(key, javaValue(item))
    return true
  }

  remove(item: unknown): boolean {
    return this.#items.delete(javaKey(item))
  }

  override contains(item: unknown): boolean {
    return this.#items.has(javaKey(item))
  }

  override size(): number {
    return this.#items.size
  }

  override clear(): void {
    this.#items.clear()
  }

  override toArray(): unknown[] {
    return [...this.#items.values()]
  }

  equals(other: unknown): boolean {
    return other instanceof HashSet && other.size() === this.size() && other.containsAll(this)
  }

  protected override removeItem(item: unknown): void {
    this.remove(item)
  }
}
