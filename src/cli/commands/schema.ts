import { readFile } from 'node:fs/promises'
import { type CommandIo, defineCommand, WrongUsage } from '#cli/command-line/command-line.ts'
import { outputOption } from '#cli/command-line/options.ts'
import { printText } from '#cli/command-line/output.ts'
import { suggestion } from '#kernel/suggest.ts'

const folder = new URL('../../../deploy/schema/', import.meta.url)

export const schemaCommand = (args: string[], io: CommandIo): Promise<number> =>
  defineCommand({
    name: 'schema',
    about: 'Print the JSON Schema of the configuration, with which editors complete and validate YAML.',
    usage: '[--kind KIND]',
    options: {
      kind: { value: 'KIND', about: 'Only this kind of object, such as Workflow (default all)' },
      output: { ...outputOption.output, about: 'The schema is JSON in both' },
    },
    examples: ['gatehouse schema > gatehouse.schema.json', 'gatehouse schema --kind Workflow'],
    run: async ({ kind }, _, output) => {
      const schema = JSON.parse(await readFile(new URL('gatehouse.schema.json', folder), 'utf8'))
      const kinds: readonly string[] = schema.properties.kind.enum
      if (kind !== undefined && !kinds.includes(kind)) {
        throw new WrongUsage(`unknown kind "${kind}"${suggestion(kind, kinds) || `; use ${kinds.join(', ')}`}`)
      }
      const { $schema, title, definitions } = schema
      const chosen = kind === undefined ? schema : { $schema, title, ...only(kind, definitions) }
      printText(JSON.stringify(chosen, null, 2), output)
      output.result(chosen)
    },
  })(args, io)

/** A schema with the definition of a kind and those that it refers to. */
function only(kind: string, definitions: Readonly<Record<string, object>>): object {
  const used = new Set([kind])
  for (const name of used) {
    for (const [, other = ''] of JSON.stringify(definitions[name]).matchAll(/"#\/definitions\/([^"]+)"/g))
      used.add(other)
  }
  const kept = Array.from(used, (name) => [name, definitions[name]])
  return { allOf: [{ $ref: `#/definitions/${kind}` }], definitions: Object.fromEntries(kept) }
}
