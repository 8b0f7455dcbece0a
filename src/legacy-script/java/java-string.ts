import { bytesOf, decodeText } from './bytes.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { itemsOf, javaText, javaValue } from './java-value.ts'

/** java.lang.String. `new` gives an object that holds the text, since that is all JavaScript can give. */
export class JavaString {
  constructor(source?: unknown, charset?: unknown) {
    const plain = javaValue(source ?? '')
    // biome-ignore lint/correctness/noConstructorReturn: a text takes the place of the object
    return new String(typeof plain === 'object' ? decodeText(bytesOf(plain), charset) : javaText(plain))
  }

  static valueOf(value: unknown): string {
    return javaText(value)
  }

  static join(separator: unknown, ...parts: unknown[]): string {
    const [first] = parts
    const items = parts.length === 1 && typeof first === 'object' ? itemsOf(first) : parts
    return items.map(javaText).join(javaText(separator))
  }

  /** Knows `%s`, `%d`, `%n` and `%%`. */
  static format(template: unknown, ...values: unknown[]): string {
    return formatText(javaText(template), values)
  }
}

export function formatText(template: string, values: readonly unknown[]): string {
  let used = 0
  return template.replace(/%(.?)/g, (form, letter: string) => {
    if (letter === '%') return '%'
    if (letter === 'n') return '\n'
    if (letter !== 's' && letter !== 'd') throw new IllegalArgumentException(`the format ${form} is not served`)
    if (used >= values.length) throw new IllegalArgumentException(`Format specifier '${form}'`)
    return javaText(values[used++])
  })
}
