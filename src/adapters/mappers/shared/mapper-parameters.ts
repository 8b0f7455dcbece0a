import type { Issues, Path } from '#kernel/issues.ts'

/**
 * The parameters of a mapper expression by position, all of them required. Empty ones at the end count as absent.
 * Undefined, with an issue reported, if one is missing or there are too many.
 */
export function readPositional<const N extends readonly string[]>(
  names: N,
  parameters: readonly string[],
  path: Path,
  issues: Issues,
): { readonly [I in keyof N]: string } | undefined {
  const given = parameters.map((parameter) => parameter.trim())
  while (given.at(-1) === '') given.pop()
  if (given.length > names.length) {
    issues.error(path, `the mapper takes ${describe(names)}; given: ${given.length}`)
    return undefined
  }
  const missing = names.filter((_, i) => (given[i] ?? '') === '')
  if (missing.length > 0) {
    issues.error(path, `the mapper takes ${describe(names)}; missing: ${missing.join(', ')}`)
    return undefined
  }
  return given as { readonly [I in keyof N]: string }
}

const describe = (names: readonly string[]): string => (names.length === 0 ? 'no parameters' : `"${names.join(',')}"`)
