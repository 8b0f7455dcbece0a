import { BuildContext, type LoadState } from '#config/build-context.ts'
import type { ConfigDocument } from '#config/config-document.ts'
import type { Issues } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { stsEndpointSchema, stsFrameSchema } from '#model/sts.ts'

/** The scalars of all values documents, by name. Two documents may not say the same name. */
export function collectValues(documents: readonly ConfigDocument[], issues: Issues): Map<string, string> {
  const values = new Map<string, string>()
  const places = new Map<string, string>()
  for (const document of documents) {
    const filed = issues.for(document)
    const top = document.yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
    for (const [name, value] of Object.entries(isJsonObject(top) ? top : {})) {
      if (name !== 'sts' && typeof value === 'object' && value !== null) {
        const hint = suggestion(name, ['sts'])
        filed.error([name], `expected a value for #[${name}], found a block; the only block is "sts"${hint}`)
        continue
      }
      const earlier = places.get(name)
      if (earlier !== undefined) filed.error([name], `"${name}" is given twice (first in ${earlier})`)
      places.set(name, earlier ?? document.at([name]))
      if (name !== 'sts') values.set(name, document.yaml.scalarText([name]) ?? '')
    }
  }
  return values
}

/** The `sts` block of one values document, its values put in. */
export function buildSts(value: unknown, document: ConfigDocument, state: LoadState): void {
  const block = isJsonObject(value) ? value['sts'] : undefined
  if (block === undefined) return
  const context = new BuildContext(state, document, 'sts', undefined)
  const { issues } = context
  issues.warning(['sts'], 'sts is read but not served by this version')
  const frame = context.part(stsFrameSchema, block, ['sts'])
  const names = new Map<string, string>()
  const paths = new Map<string, string>()
  for (const [i, endpoint] of (frame?.endpoints ?? []).entries()) {
    const at = ['sts', 'endpoints', i]
    const spec = context.part(stsEndpointSchema, endpoint, at)
    if (spec === undefined) continue
    claim(names, spec.name, 'name', context.at([...at, 'name']), (message) => issues.error([...at, 'name'], message))
    claim(paths, spec.path, 'path', context.at([...at, 'path']), (message) => issues.error([...at, 'path'], message))
    if ((spec.azRules ?? []).length === 0) {
      issues.error([...at, 'azRules'], 'no rule would deny everyone: say who may have tokens')
    }
    const rules = context.rules(spec.azRules, [...at, 'azRules'])
    state.draft.stsEndpoints.push({ at: context.at(at), spec, rules })
  }
}

function claim(
  taken: Map<string, string>,
  value: string,
  word: string,
  at: string,
  report: (message: string) => void,
): void {
  const earlier = taken.get(value)
  if (earlier === undefined) taken.set(value, at)
  else report(`another endpoint has the ${word} "${value}" (${earlier})`)
}
