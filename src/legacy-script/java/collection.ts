import { ForeignObject, type ForeignProperties, foreignProperties } from './foreign-object.ts'
import { JavaIterator } from './java-iterator.ts'
import { itemsOf, javaEquals, javaFunction, javaText } from './java-value.ts'

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
