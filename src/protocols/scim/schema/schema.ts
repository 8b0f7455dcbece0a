import type { JsonObject } from '#kernel/json.ts'

/** The schema language of RFC 7643 section 7. Everything else in this folder is driven by tables written in it. */
export const attributeTypes = [
  'string',
  'boolean',
  'decimal',
  'integer',
  'dateTime',
  'binary',
  'reference',
  'complex',
] as const
export type AttributeType = (typeof attributeTypes)[number]

export interface SchemaAttribute {
  readonly name: string
  readonly type: AttributeType
  readonly multiValued: boolean
  readonly description: string
  readonly required: boolean
  readonly caseExact: boolean
  readonly mutability: 'readWrite' | 'readOnly' | 'immutable' | 'writeOnly'
  readonly returned: 'always' | 'default' | 'request' | 'never'
  readonly uniqueness: 'none' | 'server' | 'global'
  readonly canonicalValues?: readonly string[]
  readonly referenceTypes?: readonly string[]
  /** Of complex attributes only. */
  readonly subAttributes: readonly SchemaAttribute[]
}

export interface Schema {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly attributes: readonly SchemaAttribute[]
  /** Of an extension: every resource of the type has it. */
  readonly required?: boolean
}

type Characteristics = Partial<Omit<SchemaAttribute, 'name' | 'description'>>

/** A single-valued, optional, readWrite, case-insensitive string unless the characteristics say otherwise. */
export function attribute(name: string, description: string, characteristics: Characteristics = {}): SchemaAttribute {
  const exact = characteristics.type === 'reference' || characteristics.type === 'binary'
  return {
    name,
    type: 'string',
    multiValued: false,
    description,
    required: false,
    caseExact: exact,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    subAttributes: [],
    ...characteristics,
  }
}

/** Several values, each with the sub-attributes of RFC 7643 2.4. */
export function labelledValues(
  name: string,
  description: string,
  value: Characteristics = {},
  types: readonly string[] = [],
): SchemaAttribute {
  return attribute(name, description, {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'The value itself.', value),
      attribute('display', 'A name for display.'),
      attribute('type', 'What kind of value it is.', types.length > 0 ? { canonicalValues: types } : {}),
      attribute('primary', 'Whether this is the preferred value.', { type: 'boolean' }),
    ],
  })
}

/** The sub-attribute that is used if none is named: `emails eq "x"` is `emails.value eq "x"`. */
export const defaultSubAttribute = (complex: SchemaAttribute): SchemaAttribute | undefined =>
  complex.subAttributes.find((sub) => sub.name === 'value')

export const coreUrn = 'urn:ietf:params:scim:schemas:core:2.0'

/** The document of `/Schemas`; `readSchema` reads it back. `base` is the address of the service. */
export const schemaDocument = (base: string, schema: Schema): JsonObject => ({
  schemas: [`${coreUrn}:Schema`],
  id: schema.id,
  name: schema.name,
  description: schema.description,
  attributes: schema.attributes.map(attributeDocument),
  meta: { resourceType: 'Schema', location: `${base}/Schemas/${schema.id}` },
})

function attributeDocument(attribute: SchemaAttribute): JsonObject {
  const { subAttributes, canonicalValues, referenceTypes, ...rest } = attribute
  return {
    ...rest,
    ...(canonicalValues === undefined ? {} : { canonicalValues }),
    ...(referenceTypes === undefined ? {} : { referenceTypes }),
    ...(subAttributes.length === 0 ? {} : { subAttributes: subAttributes.map(attributeDocument) }),
  }
}

const dateTimePattern = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(Z|[+-]\d{2}:\d{2})?$/

/** An xsd:dateTime (without a zone: UTC) in milliseconds; NaN for any other text. */
export function dateTimeMillis(text: string): number {
  const match = dateTimePattern.exec(text)
  if (match === null) return Number.NaN
  const [, year, month, day, zone] = match
  // Date.parse reads 30 February as 2 March.
  if (Number(day) > new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()) return Number.NaN
  return Date.parse(zone === undefined ? `${text}Z` : text)
}

export const isDateTime = (text: string): boolean => !Number.isNaN(dateTimeMillis(text))
