import { nearestName } from '#kernel/suggest.ts'

export interface Named {
  readonly className: string
  /** Names that other products' YAML uses for the same thing. */
  readonly aliases: readonly string[]
}

export interface Registry<D extends Named> {
  readonly slot: string
  /** By a whole name, or by its last segment, such as `ScimGateway`, if only one definition has it. */
  find(name: string): D | undefined
  /** The definitions' own names, sorted, without aliases. */
  names(): string[]
  all(): readonly D[]
  /** `no filter named "x" (did you mean "y"?)`, or the names of all definitions if none is close. */
  unknown(name: string): string
}

/** Throws if two definitions have one name: that is a mistake in the catalog, found at start. */
export function createRegistry<D extends Named>(slot: string, definitions: readonly D[]): Registry<D> {
  const byName = new Map<string, D>()
  for (const definition of definitions) {
    for (const name of [definition.className, ...definition.aliases]) {
      if (byName.has(name)) throw new Error(`${slot}: class name registered twice: ${name}`)
      byName.set(name, definition)
    }
  }
  const bySegment = lastSegments(byName)
  const names = () => definitions.map((d) => d.className).sort()
  return {
    slot,
    find: (name) => byName.get(name) ?? bySegment.get(name),
    names,
    all: () => definitions,
    unknown: (name) => {
      const nearest = nearestBySegment(name, byName)
      const hint = nearest === undefined ? `; use one of ${names().join(', ')}` : ` (did you mean "${nearest}"?)`
      return `no ${slot} named "${name}"${hint}`
    },
  }
}

const lastSegment = (name: string): string => name.slice(name.lastIndexOf('.') + 1)

/** The last segments that belong to one definition only. */
function lastSegments<D extends Named>(byName: ReadonlyMap<string, D>): ReadonlyMap<string, D> {
  const bySegment = new Map<string, D>()
  const ambiguous = new Set<string>()
  for (const [name, definition] of byName) {
    const segment = lastSegment(name)
    const other = bySegment.get(segment)
    if (other !== undefined && other !== definition) ambiguous.add(segment)
    bySegment.set(segment, definition)
  }
  for (const segment of ambiguous) bySegment.delete(segment)
  return bySegment
}

/** Packages are often long and alike, so the last segment decides, and the package only between names that share it. */
function nearestBySegment<D extends Named>(name: string, byName: ReadonlyMap<string, D>): string | undefined {
  const names = Array.from(byName.keys())
  const segment = nearestName(lastSegment(name), names.map(lastSegment))
  const sharing = names.filter((known) => lastSegment(known) === segment)
  const [first = ''] = sharing
  return nearestName(name, sharing) ?? byName.get(first)?.className
}
