import { Attributes } from '#identity/attributes.ts'
import { foldKey } from '#storage/client/text-keys.ts'

/** All attributes of an entry, as its row holds them: no name stands twice, in whatever letter case. */
type Held = readonly (readonly [name: string, values: readonly string[]])[]

export function writeHeld(attributes: Iterable<readonly [string, readonly string[]]>): string {
  return JSON.stringify(Array.from(attributes).filter(([, values]) => values.length > 0))
}

export const readHeld = (held: string): Attributes =>
  held === '[]' ? new Attributes() : Attributes.adopt(JSON.parse(held) as Held)

/** By folded name. */
export function heldByKey(held: string): Map<string, { readonly name: string; readonly values: readonly string[] }> {
  return new Map((JSON.parse(held) as Held).map(([name, values]) => [foldKey(name), { name, values }]))
}
