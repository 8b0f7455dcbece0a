import type { Path } from '#kernel/issues.ts'

/**
 * A module's parameters as written in YAML, whichever of its forms was used: a map of strings or lists, or a list of
 * `{name, value}` where a name may repeat. Secret parameters are merged in.
 */
export interface Params {
  names(): Iterable<string>
  /** All values in order; none when the parameter is absent. */
  values(name: string): readonly string[]
  /** Where the parameter, or its n-th value, stands; for an absent one, where it would stand. */
  pathOf(name: string, index?: number): Path
  isSecret(name: string): boolean
}
