// A mapper that makes initials of names. Its functions may be async. They are explained in
// docs/guides/writing-a-plugin.md.
import type { PluginMappedUser, PluginMapperAnswer } from '../../src/sdk/plugin/plugin-types.ts'

let names = ['givenName', 'sn']

/** The texts behind the module in the expression. What is thrown here refuses the configuration. */
export function init(texts: string[]): void {
  if (texts.length > 0) names = texts
}

/** The values of the attribute: a text, a list of texts, or null for none. What is thrown fails the request. */
export function doMapping(user: PluginMappedUser, _attributeName: string): PluginMapperAnswer {
  const letters = names.flatMap((name) => (user.attributes[name] ?? []).slice(0, 1)).map((value) => [...value][0] ?? '')
  return letters.length === 0 ? null : letters.join('').toUpperCase()
}
