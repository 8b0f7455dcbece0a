import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { kinds } from '#config/build/kinds.ts'
import { isJsonObject } from '#kernel/json.ts'
import { describeFields, readKindPage } from '../../../deploy/field-descriptions.ts'
import { definitionFiles } from '../../../deploy/write-crds.ts'
import { customResourceDefinitions } from './custom-resource-definition.ts'

/** Of objects that are no configuration. */
const byHand = ['tokengrants.yaml', 'users.yaml']

test('the definitions in deploy/crds are those that npm run crds makes', () => {
  const made = definitionFiles()
  const present = globSync('deploy/crds/*.yaml').map((file) => basename(file))
  expect(present.filter((file) => !byHand.includes(file)).sort()).toEqual([...made.keys()].sort())
  for (const [file, text] of made)
    expect({ file, text: readFileSync(`deploy/crds/${file}`, 'utf8') }).toEqual({ file, text })
})

test('there is one for every kind and version, with one version stored', () => {
  const definitions = [...customResourceDefinitions().values()].map(({ spec }) => spec as unknown as Spec)
  expect(definitions.map(({ names, versions }) => [names.kind, versions.map(({ name }) => name)])).toEqual(
    kinds.map(({ kind, versions }) => [kind, versions]),
  )
  for (const { versions } of definitions) expect(versions.filter(({ storage }) => storage)).toHaveLength(1)
})

interface Spec {
  readonly names: { readonly kind: string }
  readonly versions: readonly {
    readonly name: string
    readonly storage: boolean
    readonly schema: { readonly openAPIV3Schema: unknown }
  }[]
}

/** The rules for structural schemas that Kubernetes has, but for those that only matter with defaults. */
function faultsOf(schema: unknown, path: string): string[] {
  if (!isJsonObject(schema)) return [`${path}: no schema`]
  const faults: string[] = []
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema['x-kubernetes-int-or-string'] === true
  if (schema['type'] === undefined && !isOpen) faults.push(`${path}: no type`)
  for (const word of ['$ref', 'definitions', 'oneOf', 'patternProperties', 'propertyNames', 'const']) {
    if (word in schema) faults.push(`${path}: ${word}`)
  }
  if ('properties' in schema && 'additionalProperties' in schema) faults.push(`${path}: both kinds of properties`)
  const options = schema['anyOf']
  for (const option of Array.isArray(options) ? (options as readonly unknown[]) : []) {
    if (isJsonObject(option) && 'type' in option) faults.push(`${path}: a type inside anyOf`)
  }
  if ('items' in schema) faults.push(...faultsOf(schema['items'], `${path}[]`))
  if (isJsonObject(schema['additionalProperties']))
    faults.push(...faultsOf(schema['additionalProperties'], `${path}.*`))
  for (const [name, field] of Object.entries(isJsonObject(schema['properties']) ? schema['properties'] : {})) {
    faults.push(...faultsOf(field, `${path}.${name}`))
  }
  return faults
}

test.each([...customResourceDefinitions()])('%s is structural', (_file, { spec }) => {
  for (const { name, schema } of (spec as unknown as Spec).versions) {
    expect(faultsOf(schema.openAPIV3Schema, name)).toEqual([])
  }
})

/** Fields without fields of their own that no page describes. Pages describe rules and secret parameters as a whole. */
function undescribed(schema: unknown, path: string): string[] {
  if (!isJsonObject(schema) || /\.(?:azRules|secretParams)$/.test(path)) return []
  if (isJsonObject(schema['items']) && 'properties' in schema['items']) return undescribed(schema['items'], `${path}[]`)
  if (!isJsonObject(schema['properties'])) return 'description' in schema ? [] : [path]
  return Object.entries(schema['properties']).flatMap(([name, field]) => undescribed(field, `${path}.${name}`))
}

test.each([...definitionFiles()])('%s describes every field', (_file, text) => {
  const { spec } = parse(text) as { spec: Spec }
  for (const { schema } of spec.versions) {
    const { properties } = schema.openAPIV3Schema as { properties: { spec: unknown } }
    expect(undescribed(properties.spec, spec.names.kind)).toEqual([])
  }
})

test('every field of a kind has the description of its page', () => {
  const text = definitionFiles().get('orgs.yaml') ?? ''
  const org = parse(text) as { spec: { versions: { schema: { openAPIV3Schema: unknown } }[] } }
  expect(org.spec.versions[0]?.schema.openAPIV3Schema).toMatchObject({
    description: 'A branch of the organization that workflows, badges and reports are sorted by.',
    properties: { spec: { properties: { parent: { description: 'The `uuid` of the branch above.' } } } },
  })
  const workflow = definitionFiles().get('workflows.yaml') ?? ''
  expect(workflow).toContain('description: "The tasks: a list, or the YAML text of one (`tasks: |-`).')
})

test('a page that names a field which is not there is refused', () => {
  const [definition] = customResourceDefinitions().values()
  const page = readKindPage('# Application\n\nPurpose.\n\n| `urls[].hots` | yes | A [link](x.md). |\n')
  expect(page.fields).toEqual(new Map([['urls[].hots', 'A link.']]))
  expect(() => describeFields(definition ?? {}, page)).toThrow('urls[].hots')
})
