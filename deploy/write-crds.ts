import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { customResourceDefinitions } from '#config/custom-resource-definition.ts'

const header = '# Made by npm run crds from the schemas in src/model.\n'

/** The text of each definition, by the name of its file. */
export const definitionFiles = (): ReadonlyMap<string, string> =>
  new Map(
    Array.from(customResourceDefinitions(), ([file, definition]) => [
      file,
      `${header}${stringify(definition, { lineWidth: 0, aliasDuplicateObjects: false })}`,
    ]),
  )

export const crdFolder = join(import.meta.dirname, 'crds')

if (import.meta.main) {
  for (const [file, text] of definitionFiles()) writeFileSync(join(crdFolder, file), text)
}
