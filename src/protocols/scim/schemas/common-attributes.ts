import { attribute, type SchemaAttribute } from '#protocols/scim/schema.ts'

const readOnly = { mutability: 'readOnly' } as const

/** What every resource has beside its own schema (RFC 7643 3.1); no schema lists them. */
export const commonAttributes: readonly SchemaAttribute[] = [
  attribute('schemas', 'The schemas of the resource.', {
    type: 'reference',
    caseExact: false,
    multiValued: true,
    returned: 'always',
    ...readOnly,
  }),
  attribute('id', 'The identifier that the service gave the resource.', {
    caseExact: true,
    returned: 'always',
    uniqueness: 'server',
    ...readOnly,
  }),
  attribute('externalId', 'The identifier that the client gave the resource.', { caseExact: true }),
  attribute('meta', 'What the service knows of the resource itself.', {
    type: 'complex',
    ...readOnly,
    subAttributes: [
      attribute('resourceType', 'The type of the resource.', { caseExact: true, ...readOnly }),
      attribute('created', 'When it was created.', { type: 'dateTime', ...readOnly }),
      attribute('lastModified', 'When it was last changed.', { type: 'dateTime', ...readOnly }),
      attribute('location', 'Its address.', { type: 'reference', ...readOnly }),
      attribute('version', 'Its version.', { caseExact: true, ...readOnly }),
    ],
  }),
]
