import type { Named, Registry } from '#kernel/registry.ts'
import { suggestion } from '#kernel/suggest.ts'
import { insteadOf, openUnisonClasses, openUnisonPrefix } from '#openunison/class-list.ts'

/** Why no module of the slot has that name: it is a class of OpenUnison that is not served or of another slot, or mistyped. */
export function unknownClass(registry: Pick<Registry<Named>, 'slot' | 'unknown'>, name: string): string {
  return unservedClass(registry.slot, name) ?? registry.unknown(name)
}

/** What to use instead of a documented class of OpenUnison; undefined if the name is not one. */
export function unservedClass(slot: string, name: string): string | undefined {
  const found = Object.entries(openUnisonClasses).flatMap(([ofSlot, classes]) =>
    classes.filter((known) => isNamed(known.name, name)).map((known) => ({ ofSlot, known })),
  )
  const [first] = found
  if (first === undefined) return undefined
  const here = found.find(({ ofSlot }) => ofSlot === slot)
  if (here === undefined)
    return `"${name}" can't be used here: in OpenUnison it is not a "${slot}", but a "${first.ofSlot}"`
  const instead = insteadOf(here.known)?.replaceAll('`', '')
  return `"${name}" is a class of OpenUnison that is not served${instead === undefined ? '' : `; ${instead}`}`
}

/** By the whole name, or by its last segment alone. */
const isNamed = (known: string, name: string): boolean =>
  name === `${openUnisonPrefix}${known}` || (!name.includes('.') && known.endsWith(`.${name}`))

export function unknownTaskType(name: string, taskTypes: Iterable<string>): string {
  return `no task type "${name}"${suggestion(name, taskTypes)}`
}
