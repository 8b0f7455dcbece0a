import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { customResourceDefinitions } from '#config/sources/custom-resource-definition.ts'
import type { JsonObject } from '#kernel/json.ts'
import { describeFields, readKindPage } from './field-descriptions.ts'

/** Begins a document, since `helm show crds` prints one file after the other with nothing between them. */
const header =
  '---\n# Made by npm run crds from the schemas in src/config/kinds and the tables in docs/reference/kinds.\n'

/** The text of each definition, by the name of its file. */
export const definitionFiles = (): ReadonlyMap<string, string> =>
  new Map(
    Array.from(customResourceDefinitions(), ([file, definition]) => [
      file,
      `${header}${stringify(described(definition), { lineWidth: 0, aliasDuplicateObjects: false })}`,
    ]),
  )

/** What people keep in a target, a user, has no page. */
function described(definition: JsonObject): JsonObject {
  const { names } = definition['spec'] as { names: { kind: string } }
  const page = join(import.meta.dirname, '..', 'docs', 'reference', 'kinds', `${names.kind}.md`)
  return existsSync(page) ? describeFields(definition, readKindPage(readFileSync(page, 'utf8'))) : definition
}

export const crdFolder = join(import.meta.dirname, 'crds')

if (import.meta.main) {
  for (const [file, text] of definitionFiles()) writeFileSync(join(crdFolder, file), text)
}
