import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { catalog } from '#catalog/catalog.ts'
import { groups, type Kind, kinds } from '#config/build/kinds.ts'
import { paramValueSchema } from '#config/kinds/envelope.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { descriptionOf } from '#sdk/module/parameter-types.ts'
import type { ParameterTable } from '#sdk/module/parameters.ts'
import { readKindPage } from './field-descriptions.ts'

/**
 * The JSON Schema that editors complete and validate YAML with: draft 7, which YAML language servers know best. It
 * refuses nothing that `gatehouse check` accepts.
 */

/** A schema that is being made. */
type Draft = Record<string, JsonValue>

interface Classes {
  all(): readonly {
    readonly className: string
    readonly aliases: readonly string[]
    readonly parameters?: ParameterTable
  }[]
}

/** Where an object names a class, the classes that it can name, and the field with their parameters. */
const slots: readonly {
  readonly kind: string
  readonly at: string
  readonly classes: Classes
  readonly field: string
}[] = [
  { kind: 'Application', at: 'urls[].filterChain[]', classes: catalog.filters, field: 'params' },
  { kind: 'AuditAnchor', at: '', classes: catalog.auditSinks, field: 'params' },
  { kind: 'AuditSink', at: '', classes: catalog.auditSinks, field: 'params' },
  { kind: 'AuthenticationMechanism', at: '', classes: catalog.authMechanisms, field: 'init' },
  { kind: 'CustomAuthorization', at: '', classes: catalog.authorizations, field: 'params' },
  { kind: 'DirectoryInsert', at: '', classes: catalog.directoryInserts, field: 'params' },
  { kind: 'Notifier', at: '', classes: catalog.notifiers, field: 'params' },
  { kind: 'OUJob', at: '', classes: catalog.jobs, field: 'params' },
  { kind: 'Target', at: '', classes: catalog.targets, field: 'params' },
]

/** `#[NAME]`: checked once its value is known. */
const substituted: JsonObject = { type: 'string', pattern: '#\\[' }

export const schemaFile = join(import.meta.dirname, 'schema', 'gatehouse.schema.json')

export function schemaText(): string {
  const schema: JsonObject = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Gatehouse configuration',
    type: 'object',
    properties: {
      apiVersion: { type: 'string', description: 'Group and version of the kind, such as gatehouse.dev/v1.' },
      kind: { enum: kinds.map(({ kind }) => kind), description: 'What the object is.' },
    },
    // A document without these is one of values, or of policy tests.
    if: { anyOf: ['apiVersion', 'kind', 'metadata', 'spec'].map((name) => ({ required: [name] })) },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ['apiVersion', 'kind', 'metadata', 'spec'] },
    allOf: kinds.map(({ kind }) => whenThen('kind', [kind], { $ref: `#/definitions/${kind}` })),
    definitions: {
      ...Object.fromEntries(kinds.map((kind) => [kind.kind, kindSchema(kind)])),
      'Workflow.task': taskSchema(),
      parameter: parameterSchema,
    },
  }
  return `${JSON.stringify(schema)}\n`
}

const whenThen = (field: string, values: readonly string[], schema: JsonObject): JsonObject => ({
  if: { properties: { [field]: { enum: [...values] } }, required: [field] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: schema,
})

function jsonSchema(schema: z.ZodType): Draft {
  const { $schema, ...rest } = z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input', target: 'draft-7' })
  // By way of text, since schemas share their parts.
  return JSON.parse(JSON.stringify(rest))
}

function kindSchema({ kind, schema, versions }: Kind): JsonObject {
  const whole = jsonSchema(schema)
  const page = readKindPage(readFileSync(join(import.meta.dirname, `../docs/reference/kinds/${kind}.md`), 'utf8'))
  const spec = fieldOf(whole, 'spec')
  for (const [path, meaning] of page.fields) {
    for (const field of placesOf(spec, path)) field['description'] = meaning
  }
  for (const slot of slots.filter((candidate) => candidate.kind === kind)) {
    for (const place of placesOf(spec, slot.at)) addClasses(place, slot.classes, slot.field)
  }
  if (kind === 'Workflow') {
    for (const tasks of placesOf(spec, 'tasks[]')) tasks['$ref'] = '#/definitions/Workflow.task'
    for (const place of placesOf(spec, 'dynamicConfiguration')) addClasses(place, catalog.dynamicWorkflows, 'params')
  }
  const named = fieldOf(whole, 'apiVersion')
  // The specification writes versions without a group.
  if (named !== undefined) named['enum'] = ['', ...groups].flatMap((group) => versions.map((one) => join(group, one)))
  return { description: page.purpose, ...(editable(whole) as JsonObject) }
}

function addClasses(place: Draft, classes: Classes, field: string): void {
  const named = fieldOf(place, 'className')
  if (named === undefined) throw new Error('a slot without className')
  const all = classes.all()
  named['enum'] = all.flatMap(({ className, aliases }) => [className, ...aliases])
  place['allOf'] = all.flatMap(({ className, aliases, parameters }) =>
    parameters === undefined
      ? []
      : [whenThen('className', [className, ...aliases], { properties: { [field]: parametersSchema(parameters) } })],
  )
}

const parameterSchema = jsonSchema(paramValueSchema)

/** Parameters in either form. None is required here, since a secret parameter may have its value. */
function parametersSchema(table: ParameterTable): JsonObject {
  const entries = Object.entries(table)
  const plain = entries.filter(([name]) => !name.includes('<'))
  const forms = entries.filter(([name]) => name.includes('<'))
  const described = ([name, row]: (typeof entries)[number]): [string, JsonObject] => {
    const { about, type } = descriptionOf(row)
    const words = /^one of (.+)$/.exec(type)?.[1]?.split(', ')
    const known: JsonValue =
      words === undefined
        ? [{ $ref: '#/definitions/parameter' }]
        : [{ enum: [...new Set(['', ...words])] }, substituted]
    return [name.includes('<') ? formPattern(name) : name, { description: about, anyOf: known }]
  }
  const names = [
    ...plain.map(([name]) => ({ const: name })),
    ...forms.map(([name]) => ({ pattern: formPattern(name) })),
  ]
  return {
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: names.length === 0 ? { maxItems: 0 } : { items: { properties: { name: { anyOf: names } } } },
    else: {
      properties: Object.fromEntries(plain.map(described)),
      patternProperties: Object.fromEntries(forms.map(described)),
      additionalProperties: false,
    },
  }
}

/** `map.<attribute>.source` */
const formPattern = (name: string): string =>
  `^${name
    .split(/<[^>]*>/)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.+')}$`

/** What a task can have depends on its type. */
function taskSchema(): JsonObject {
  const branch: JsonObject = { type: ['array', 'null'], items: { $ref: '#/definitions/Workflow.task' } }
  const tasks = Array.from(catalog.tasks, ([taskType, { fields, branches }]) => {
    const rows = Object.entries(fields).map(([name, row]) => [name, descriptionOf(row)] as const)
    return whenThen('taskType', [taskType], {
      required: rows.filter(([, { required }]) => required === true).map(([name]) => name),
      properties: {
        taskType: true,
        timeoutSeconds: { description: 'The time limit of this step.' },
        ...Object.fromEntries(rows.map(([name, { about }]) => [name, { description: about }])),
        ...(branches ? { onSuccess: branch, onFailure: branch } : {}),
      },
      additionalProperties: false,
    })
  })
  return {
    type: 'object',
    required: ['taskType'],
    properties: { taskType: { enum: [...catalog.tasks.keys()], description: 'What the task does.' } },
    allOf: tasks,
  }
}

/** A text with rules can also be a value that is substituted. */
function editable(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return schema.map(editable)
  if (!isJsonObject(schema)) return schema
  const entries = Object.entries(schema).map(([key, value]) => [key, key === 'enum' ? value : editable(value ?? null)])
  // A format that only Zod knows; its pattern says the same.
  const { description, format: _, ...rest }: Draft = Object.fromEntries(entries)
  const hasRules = rest['type'] === 'string' && ('enum' in rest || 'pattern' in rest)
  return {
    ...(description === undefined ? {} : { description }),
    ...(hasRules ? { anyOf: [rest, substituted] } : rest),
  }
}

/** The schemas at a path as in `urls[].hosts`; several where a field can have several forms. */
function placesOf(schema: Draft | undefined, path: string): Draft[] {
  let places = schema === undefined ? [] : [schema]
  for (const step of path.split('.').filter((one) => one !== '')) {
    const name = step.replace('[]', '')
    places = places
      .flatMap(formsOf)
      .map((place) => (name === '' ? place : fieldOf(place, name)))
      .filter(isFound)
    if (name !== step)
      places = places
        .flatMap(formsOf)
        .map(({ items }) => objectOf(items))
        .filter(isFound)
  }
  return places
}

const formsOf = (schema: Draft): Draft[] => {
  const { anyOf } = schema
  return Array.isArray(anyOf) ? anyOf.map(objectOf).filter(isFound) : [schema]
}

const isFound = (schema: Draft | undefined): schema is Draft => schema !== undefined

const fieldOf = (schema: Draft, name: string): Draft | undefined => objectOf(objectOf(schema['properties'])?.[name])

const objectOf = (value: JsonValue | undefined): Draft | undefined => (isJsonObject(value) ? value : undefined)

if (import.meta.main) writeFileSync(schemaFile, schemaText())
