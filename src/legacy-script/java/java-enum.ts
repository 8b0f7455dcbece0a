import { IllegalArgumentException } from './java-exception.ts'
import { javaText } from './java-value.ts'

/** One value of an enumeration of Java: an object of its own, told by name. */
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
