import type { Path } from '#kernel/issues.ts'

/**
 * A module's parameters from YAML in any of its forms: a map of strings or lists, or a list of `{name, value}`
 * where a name may repeat. Secret parameters are merged in.
 */
export interface Params {
  names(): Iterable<string>
  /** All values in order; none if the parameter is absent. */
  values(name: string): readonly string[]
  /** The place of the parameter, or of its n-th value, also if it is absent. */
  pathOf(name: string, index?: number): Path
  isSecret(name: string): boolean
}
