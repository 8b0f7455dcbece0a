import { JavaCollection } from './collection.ts'
import { javaKey } from './java-key.ts'
import { itemsOf, javaValue } from './java-value.ts'

/** java.util.HashSet; it goes over its items in the order in which they came. */
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
