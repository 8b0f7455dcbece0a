import { suggestion } from '#kernel/suggest.ts'

export interface Named {
  readonly className: string
  /** Names that other products' YAML uses for the same thing. */
  readonly aliases: readonly string[]
}

export interface Registry<D extends Named> {
  readonly slot: string
  find(name: string): D | undefined
  /** The definitions' own names, sorted, without aliases. */
  names(): string[]
  all(): readonly D[]
  /** `no filter named "x" (did you mean "y"?)` */
  unknown(name: string): string
}

/** Throws when two definitions claim one name: that is a mistake in the catalogue, found at start. */
export function createRegistry<D extends Named>(slot: string, definitions: readonly D[]): Registry<D> {
  const byName = new Map<string, D>()
  for (const definition of definitions) {
    for (const name of [definition.className, ...definition.aliases]) {
      if (byName.has(name)) throw new Error(`${slot}: class name registered twice: ${name}`)
      byName.set(name, definition)
    }
  }
  return {
    slot,
    find: (name) => byName.get(name),
    names: () => definitions.map((d) => d.className).sort(),
    all: () => definitions,
    unknown: (name) => `no ${slot} named "${name}"${suggestion(name, byName.keys())}`,
  }
}
