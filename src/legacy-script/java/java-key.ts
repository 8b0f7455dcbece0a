import { javaValue } from './java-value.ts'

/** An object that stands for a text, so that two of them are one key. */
export abstract class TextValue {
  abstract toString(): string

  equals(other: unknown): boolean {
    return other instanceof TextValue && javaKey(other) === javaKey(this)
  }
}

/** What a map or a set tells its keys apart by. */
export function javaKey(value: unknown): unknown {
  const plain = javaValue(value)
  return plain instanceof TextValue ? `\u0000${plain.constructor.name}:${plain.toString()}` : plain
}
