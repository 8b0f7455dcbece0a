import { IllegalArgumentException, NullPointerException } from './java-exception.ts'

/** A JavaScript value for Java: null for undefined, and texts instead of objects with one. */
export function javaValue(value: unknown): unknown {
  if (value === undefined) return null
  return value instanceof String || value instanceof Number || value instanceof Boolean ? value.valueOf() : value
}

/** Like Java's `String.valueOf`. */
export function javaText(value: unknown): string {
  const plain = javaValue(value)
  return plain === null ? 'null' : typeof plain === 'symbol' ? 'symbol' : `${plain}`
}

/** A parameter of type String: null stays null. */
export const optionalText = (value: unknown): string | null => (javaValue(value) === null ? null : javaText(value))

/** The items of a Java collection, or of a JavaScript array or iterable. */
export function itemsOf(collection: unknown): unknown[] {
  if (collection === null || collection === undefined) throw new NullPointerException('the collection is null')
  if (typeof collection === 'object' && Symbol.iterator in collection) {
    return Array.from(collection as Iterable<unknown>, javaValue)
  }
  throw new IllegalArgumentException('a collection is needed')
}

/** Like Java's `equals`: the same value, the same object, or an object whose `equals` says so. */
export function javaEquals(one: unknown, other: unknown): boolean {
  const [a, b] = [javaValue(one), javaValue(other)]
  if (a === b) return true
  if (typeof a !== 'object' || a === null || !('equals' in a) || typeof a.equals !== 'function') return false
  return a.equals(b) === true
}

/** A JavaScript function as a functional interface. */
export function javaFunction(value: unknown): (...args: unknown[]) => unknown {
  if (typeof value !== 'function') throw new IllegalArgumentException('a function is needed')
  return value as (...args: unknown[]) => unknown
}

/** An object that represents a text, so that two equal ones are one key. */
export abstract class TextValue {
  abstract toString(): string

  equals(other: unknown): boolean {
    return other instanceof TextValue && javaKey(other) === javaKey(this)
  }
}

/** The key by which a map or a set compares. */
export function javaKey(value: unknown): unknown {
  const plain = javaValue(value)
  return plain instanceof TextValue ? `\u0000${plain.constructor.name}:${plain.toString()}` : plain
}
