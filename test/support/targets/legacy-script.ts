import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

interface TargetDocument {
  readonly spec: { readonly params: readonly { readonly name: string; readonly value: string }[] }
}

/** The script of the example for targets that were written for OpenUnison. */
export function legacyTargetScript(): string {
  const file = new URL('../../../examples/legacy-target/target.yaml', import.meta.url)
  const { spec } = parse(readFileSync(file, 'utf8')) as TargetDocument
  const script = spec.params.find(({ name }) => name === 'javaScript')?.value
  if (script === undefined) throw new Error('the example has no script')
  return script
}
