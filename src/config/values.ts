import type { ConfigDocument } from '#config/config-document.ts'
import type { Issues } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'

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
