import { RE2JS } from 're2js'

/** A regular expression from configuration, matched in linear time for any input (RE2). */
export interface SafePattern {
  readonly source: string
  /** True when the whole text matches. */
  matches(text: string): boolean
  /** True when the text starts with a match. */
  matchesStart(text: string): boolean
  /** The text of the named group if the whole text matches; undefined if the group has no part in the match. */
  group(text: string, name: string): string | undefined
  /** The text of the numbered group, 0 for the whole; undefined as for a named one. */
  numbered(text: string, group: number): string | undefined
  /** How many numbered groups it has. */
  readonly groups: number
}

/** Throws a plain Error with RE2's reason when the pattern is not RE2 syntax (back-references, look-around). */
export function compilePattern(source: string): SafePattern {
  const compiled = RE2JS.compile(source)
  const names = compiled.namedGroups()
  return {
    source,
    groups: compiled.groupCount(),
    numbered: (text, group) => {
      const matcher = compiled.matcher(text)
      return matcher.matches() ? (matcher.group(group) ?? undefined) : undefined
    },
    matches: (text) => compiled.matcher(text).matches(),
    matchesStart: (text) => compiled.matcher(text).lookingAt(),
    group: (text, name) => {
      const matcher = compiled.matcher(text)
      return Object.hasOwn(names, name) && matcher.matches() ? (matcher.group(name) ?? undefined) : undefined
    },
  }
}
