import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { kinds } from './kinds.ts'

/** Blocks that are the same in every kind and described once, in docs/configuration.md. */
const sharedBlocks = new Set(['azRules', 'secretParams'])

/** Every field below a schema, such as `urls[].uri`; parameters and other free maps are one field. */
function fieldsOf(schema: z.core.$ZodType, prefix = ''): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'optional') return fieldsOf(def.innerType, prefix)
  if (def.type === 'array') return fieldsOf(def.element, `${prefix}[]`)
  if (def.type !== 'object') return [prefix]
  return Object.entries(def.shape).flatMap(([name, field]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`
    return sharedBlocks.has(name) ? [path] : fieldsOf(field, path)
  })
}

describe.each(kinds)('docs/reference/kinds/$kind.md', ({ kind, schema, versions }) => {
  const page = readFileSync(`docs/reference/kinds/${kind}.md`, 'utf8')

  test('lists exactly the existing fields', () => {
    const rows = Array.from(page.matchAll(/^\| `([^`]+)` \|/gm), (match) => match[1])
    const { def } = (schema as z.ZodObject)._zod
    const spec = def.shape['spec']
    if (spec === undefined) throw new Error('no spec')
    const fields = fieldsOf(spec).map((field) => field.replace(/\[\]$/, ''))
    expect(rows.sort()).toEqual(fields.sort())
  })

  test('names its versions', () => {
    expect(versions.filter((version) => !page.includes(`openunison.tremolo.io/${version}`))).toEqual([])
  })
})
