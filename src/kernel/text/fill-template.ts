import { readFileSync } from 'node:fs'

/** A text, or the lines that stand for a whole line. */
type Values = Readonly<Record<string, string | readonly string[]>>

/**
 * The text of a template, with `%{name}` replaced by the value. Where it is alone in a line, that line becomes the lines of
 * the value, with the same indentation; it disappears if there are none.
 */
export function fillTemplate(file: URL, values: Values): string {
  const given = (name: string): string | readonly string[] => {
    const value = values[name]
    if (value === undefined) throw new Error(`${file.pathname} has %{${name}}, which has no value`)
    return value
  }
  return readFileSync(file, 'utf8').replace(
    /^( *)%\{(\w+)\}\n|%\{(\w+)\}/gm,
    (_, indent: string, whole: string | undefined, name: string) =>
      whole === undefined
        ? [given(name)].flat().join(' ')
        : [given(whole)]
            .flat()
            .map((line) => `${indent}${line}\n`)
            .join(''),
  )
}
