import { IllegalArgumentException, IndexOutOfBoundsException, NoSuchElementException } from './java-exception.ts'
import { javaFunction, javaText, javaValue } from './java-value.ts'

/** java.lang.StringBuffer and java.lang.StringBuilder. */
export class StringBuffer {
  #text: string

  constructor(source?: unknown) {
    const plain = javaValue(source ?? '')
    this.#text = typeof plain === 'number' ? '' : javaText(plain)
  }

  append(value: unknown): this {
    this.#text += javaText(value)
    return this
  }

  insert(position: unknown, value: unknown): this {
    const at = this.#position(position, this.#text.length + 1)
    this.#text = this.#text.slice(0, at) + javaText(value) + this.#text.slice(at)
    return this
  }

  deleteCharAt(position: unknown): this {
    const at = this.#position(position)
    this.#text = this.#text.slice(0, at) + this.#text.slice(at + 1)
    return this
  }

  setLength(length: unknown): void {
    this.#text = this.#text.slice(0, Number(length)).padEnd(Number(length), '\u0000')
  }

  charAt(position: unknown): string {
    return this.#text.charAt(this.#position(position))
  }

  indexOf(part: unknown): number {
    return this.#text.indexOf(javaText(part))
  }

  length(): number {
    return this.#text.length
  }

  reverse(): this {
    this.#text = [...this.#text].reverse().join('')
    return this
  }

  toString(): string {
    return this.#text
  }

  #position(value: unknown, end = this.#text.length): number {
    const at = javaValue(value)
    if (typeof at === 'number' && Number.isInteger(at) && at >= 0 && at < end) return at
    throw new IndexOutOfBoundsException(`index ${javaText(value)},length ${this.#text.length}`)
  }
}

/** java.util.Optional. */
export class Optional {
  readonly #value: unknown

  constructor(value: unknown) {
    this.#value = javaValue(value)
  }

  isPresent(): boolean {
    return this.#value !== null
  }

  isEmpty(): boolean {
    return this.#value === null
  }

  get(): unknown {
    if (this.#value === null) throw new NoSuchElementException('No value present')
    return this.#value
  }

  orElse(fallback: unknown): unknown {
    return this.#value ?? javaValue(fallback)
  }

  ifPresent(action: unknown): void {
    if (this.#value !== null) javaFunction(action)(this.#value)
  }

  toString(): string {
    return this.#value === null ? 'Optional.empty' : `Optional[${javaText(this.#value)}]`
  }
}

/** java.time.Duration, to the millisecond. */
export class Duration {
  readonly #millis: number

  constructor(millis: number) {
    this.#millis = millis
  }

  static ofMillis(millis: unknown): Duration {
    return new Duration(Number(millis))
  }

  static ofSeconds(seconds: unknown): Duration {
    return new Duration(Number(seconds) * 1000)
  }

  static ofMinutes(minutes: unknown): Duration {
    return new Duration(Number(minutes) * 60_000)
  }

  toMillis(): number {
    return this.#millis
  }
}

/** One value of a Java enumeration: an object, identified by name. */
export class JavaEnum {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  name(): string {
    return this.#name
  }

  equals(other: unknown): boolean {
    return other === this
  }

  toString(): string {
    return this.#name
  }
}

/** The enumeration's class, with a static field for each value. */
export function javaEnum<const N extends string>(names: readonly N[]): Readonly<Record<N, JavaEnum>> & JavaEnumType {
  const values = names.map((name) => [name, new JavaEnum(name)] as const)
  const type = { valueOf: (name: unknown) => valueNamed(values, name), ...Object.fromEntries(values) }
  return type as Readonly<Record<N, JavaEnum>> & JavaEnumType
}

interface JavaEnumType {
  valueOf(name: unknown): JavaEnum
}

function valueNamed(values: readonly (readonly [string, JavaEnum])[], name: unknown): JavaEnum {
  const found = values.find(([known]) => known === javaText(name))?.[1]
  if (found === undefined) throw new IllegalArgumentException(`No enum constant ${javaText(name)}`)
  return found
}
