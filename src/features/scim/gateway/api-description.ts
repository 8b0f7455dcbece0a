import * as z from 'zod'
import { searchSchema } from '#protocols/scim/lists.ts'
import { patchSchema } from '#protocols/scim/patch/parse-patch.ts'
import type { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { errorSchema, scimMediaType } from '#protocols/scim/schema/scim-error.ts'
import { commonAttributes } from '#protocols/scim/schema/standard-schemas.ts'
import { DescribedApi, type OperationDescription, placeAtMount } from '#sdk/api/api-description.ts'
import type { FilterApi } from '#sdk/filter/filter-api.ts'
import { bulkRequestSchema } from './bulk.ts'
import { dryRunMessage } from './dry-run.ts'
import type { ServedConfig } from './gateway-config.ts'

type Operations = Readonly<Record<string, OperationDescription>>

const title = 'SCIM 2.0 gateway'

/** The API of a gateway, described on first use. */
export function scimApi(config: ServedConfig): FilterApi {
  let described: DescribedApi | undefined
  return {
    title,
    formats: ['openapi'],
    hasOwnCredentials: false,
    place: placeAtMount,
    get documents() {
      described ??= describeGateway(config)
      return described
    },
  }
}

/**
 * Everything below the URL of a gateway. Resources have the attributes of its schemas; what its targets can store is
 * known only while it runs, and is the answer of `/Schemas`.
 */
function describeGateway({ users, groups, workflows, types }: ServedConfig): DescribedApi {
  const user = answered(users.schema)
  const group = answered(groups.schema)
  const others = types.map(({ users: { type, schema }, workflows: { deleteUser } }) => {
    const { name, endpoint } = type
    const described = { name, document: `${name}Resource`, endpoint, one: `one ${name}`, all: endpoint.slice(1) }
    const operations = resourceOperations(described, { create: true, remove: deleteUser !== undefined })
    return { document: described.document, schema, operations }
  })
  return new DescribedApi({
    title,
    version: '2.0',
    type: scimMediaType,
    tag: (path) => {
      const [, first = ''] = path.split('/')
      if (first === 'Me') return 'Users'
      const isOfType = ['Users', 'Groups', ...types.map(({ users }) => users.type.endpoint.slice(1))].includes(first)
      return isOfType ? first : 'Service'
    },
    answers: {
      User: user,
      UserChange: z.union([user, dryRunMessage]),
      UserList: listOf(user),
      Group: group,
      GroupChange: z.union([group, dryRunMessage]),
      DryRun: dryRunMessage,
      GroupList: listOf(group),
      ...Object.fromEntries(others.flatMap(({ document, schema }) => answersOf(document, answered(schema)))),
      AnyList: listOf(z.looseObject({})),
      Accepted: z.object({ schemas: z.array(z.string()), detail: z.string(), workflowId: z.string() }),
      BulkResponse: z.object({
        schemas: z.array(z.string()),
        Operations: z.array(
          z.object({
            method: z.string(),
            bulkId: z.string().optional(),
            location: z.string().optional(),
            version: z.string().optional(),
            status: z.string(),
            response: z.looseObject({}).optional(),
          }),
        ),
      }),
      Document: z.looseObject({ schemas: z.array(z.string()) }),
      Error: z.object({
        schemas: z.array(z.literal(errorSchema)),
        status: z.string(),
        scimType: z.string().optional(),
        detail: z.string(),
      }),
    },
    bodies: {
      UserRequest: sent(users.schema),
      GroupRequest: sent(groups.schema),
      ...Object.fromEntries(others.map(({ document, schema }) => [`${document}Request`, sent(schema)])),
      PatchRequest: patchBody,
      SearchRequest: searchBody,
      BulkRequest: bulkBody,
    },
    failure: { description: 'What is wrong (RFC 7644 3.12)', schema: 'Error', type: scimMediaType },
    operations: {
      ...resourceOperations(described('User', 'user'), { create: true, remove: workflows.deleteUser !== undefined }),
      getMe: { route: 'GET /Me', summary: 'The user whose login is that of the caller', answer: 'User' },
      ...resourceOperations(described('Group', 'group'), {
        create: workflows.createGroup !== undefined,
        remove: workflows.deleteGroup !== undefined,
      }),
      ...Object.fromEntries(others.flatMap(({ operations }) => Object.entries(operations))),
      search: {
        route: 'POST /.search',
        summary: 'Finds resources of all types',
        body: 'SearchRequest',
        answer: 'AnyList',
      },
      bulk: {
        route: 'POST /Bulk',
        summary: 'Makes several changes',
        query: dryRun,
        body: 'BulkRequest',
        answer: 'BulkResponse',
      },
      getServiceProviderConfig: {
        route: 'GET /ServiceProviderConfig',
        summary: 'What the gateway supports',
        answer: 'Document',
      },
      listResourceTypes: { route: 'GET /ResourceTypes', summary: 'The resource types', answer: 'AnyList' },
      listSchemas: {
        route: 'GET /Schemas',
        summary: 'The attributes that this gateway stores or shows',
        answer: 'AnyList',
      },
    },
  })
}

const projection = {
  attributes: 'Only these attributes, separated by commas',
  excludedAttributes: 'Without these attributes',
}
const listQuery = {
  filter: 'Such as `userName eq "ada"` (RFC 7644 3.4.2.2)',
  sortBy: 'An attribute',
  sortOrder: '"ascending" or "descending"',
  startIndex: 'The first result, from 1',
  count: 'How many at most',
  cursor: 'The `nextCursor` of the page before; empty for the first page (RFC 9865)',
  ...projection,
}
const waits = { '202': { description: 'The change was accepted and waits for a decision', schema: 'Accepted' } }
const dryRun = { dryRun: '`true` changes nothing and answers what the change would do; also as the header `Dry-Run`' }
const previews = { '200': { description: 'What the change would do', schema: 'DryRun' } }

interface DescribedType {
  readonly name: string
  /** The name of its schema in the description. */
  readonly document: string
  readonly endpoint: `/${string}`
  /** As summaries name one of them, and all. */
  readonly one: string
  readonly all: string
}

const described = (name: 'User' | 'Group', noun: string): DescribedType => ({
  name,
  document: name,
  endpoint: `/${name}s`,
  one: `a ${noun}`,
  all: `${name}s`,
})

const answersOf = (name: string, one: z.ZodType): [string, z.ZodType][] => [
  [name, one],
  [`${name}Change`, z.union([one, dryRunMessage])],
  [`${name}List`, listOf(one)],
]

/** The operations of one resource type. */
function resourceOperations(
  { name, document, endpoint, one, all }: DescribedType,
  { create, remove }: { readonly create: boolean; readonly remove: boolean },
): Operations {
  const operations: Operations = {
    [`list${all}`]: {
      route: `GET ${endpoint}`,
      summary: `Lists ${all.toLowerCase()}`,
      query: listQuery,
      answer: `${document}List`,
    },
    ...(create && {
      [`create${name}`]: {
        route: `POST ${endpoint}`,
        summary: `Creates ${one}`,
        query: { ...projection, ...dryRun },
        body: `${document}Request`,
        answers: { ...previews, '201': { description: 'Created', schema: document }, ...waits },
        failures: { '400': 'An attribute is not valid', '409': 'The name is taken' },
      },
    }),
    [`search${all}`]: {
      route: `POST ${endpoint}/.search`,
      summary: `Lists ${all.toLowerCase()} by a body instead of a query`,
      body: 'SearchRequest',
      answer: `${document}List`,
    },
    [`get${name}`]: { route: `GET ${endpoint}/{id}`, summary: `Reads ${one}`, query: projection, answer: document },
    [`replace${name}`]: {
      route: `PUT ${endpoint}/{id}`,
      summary: `Replaces ${one}`,
      query: { ...projection, ...dryRun },
      body: `${document}Request`,
      answer: `${document}Change`,
      answers: waits,
      failures: { '412': 'The version in If-Match is not the current one' },
    },
    [`patch${name}`]: {
      route: `PATCH ${endpoint}/{id}`,
      summary: `Changes ${one}`,
      query: { ...projection, ...dryRun },
      body: 'PatchRequest',
      answer: `${document}Change`,
      answers: { '204': { description: 'Changed' }, ...waits },
      failures: { '412': 'The version in If-Match is not the current one' },
    },
    ...(remove && {
      [`delete${name}`]: {
        route: `DELETE ${endpoint}/{id}`,
        summary: `Deletes ${one}`,
        query: dryRun,
        answers: { ...previews, '204': { description: 'Deleted' }, ...waits },
      },
    }),
  }
  return operations
}

const patchBody = z.object({
  schemas: z.array(z.literal(patchSchema)),
  Operations: z.array(
    z.object({
      op: z.enum(['add', 'remove', 'replace']),
      path: z
        .string()
        .meta({ examples: ['displayName'] })
        .optional(),
      value: z.unknown().optional(),
    }),
  ),
})

const searchBody = z.object({
  schemas: z.array(z.literal(searchSchema)),
  filter: z.string().optional(),
  sortBy: z.string().optional(),
  sortOrder: z.enum(['ascending', 'descending']).optional(),
  startIndex: z.int().optional(),
  count: z.int().optional(),
  cursor: z.string().optional(),
  attributes: z.array(z.string()).optional(),
  excludedAttributes: z.array(z.string()).optional(),
})

const bulkBody = z.object({
  schemas: z.array(z.literal(bulkRequestSchema)),
  failOnErrors: z.int().optional(),
  Operations: z.array(
    z.object({
      method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']),
      path: z.string().meta({ examples: ['/Users'] }),
      bulkId: z.string().optional(),
      version: z.string().optional(),
      data: z.looseObject({}).optional(),
    }),
  ),
})

const listOf = (resource: z.ZodType) =>
  z.object({
    schemas: z.array(z.string()),
    totalResults: z.int(),
    itemsPerPage: z.int(),
    startIndex: z.int().optional(),
    nextCursor: z.string().optional(),
    Resources: z.array(resource),
  })

type Shown = (attribute: SchemaAttribute) => boolean

/** A resource as clients read it. A projection may leave out all but `schemas` and `id`. */
function answered(schema: ResourceSchema): z.ZodType {
  return resource(
    schema,
    ({ returned }) => returned !== 'never',
    ({ returned }) => returned === 'always',
  )
}

/** A resource as clients send it. */
function sent(schema: ResourceSchema): z.ZodType {
  return resource(
    schema,
    ({ name, mutability }) => name === 'schemas' || mutability !== 'readOnly',
    ({ name, required }) => name === 'schemas' || required,
  )
}

function resource({ core, extensions }: ResourceSchema, isShown: Shown, isRequired: Shown): z.ZodType {
  const own = object([...commonAttributes, ...core.attributes], isShown, isRequired).shape
  const extended = extensions.map(({ id, description, attributes }: Schema) => [
    id,
    object(attributes, isShown, () => false)
      .describe(description)
      .optional(),
  ])
  return z.object({ ...own, ...Object.fromEntries(extended) })
}

const object = (attributes: readonly SchemaAttribute[], isShown: Shown, isRequired: Shown) =>
  z.object(
    Object.fromEntries(
      attributes.filter(isShown).map((attribute) => {
        const { description, multiValued } = attribute
        const one = value(attribute, isShown)
        const whole = (multiValued ? z.array(one) : one).describe(description)
        return [attribute.name, isRequired(attribute) ? whole : whole.optional()]
      }),
    ),
  )

function value({ type, subAttributes, canonicalValues }: SchemaAttribute, isShown: Shown): z.ZodType {
  switch (type) {
    case 'complex':
      return object(subAttributes, isShown, () => false)
    case 'boolean':
      return z.boolean()
    case 'integer':
      return z.int()
    case 'decimal':
      return z.number()
    case 'dateTime':
      return z.string().meta({ format: 'date-time' })
    default:
      return canonicalValues === undefined ? z.string() : z.string().meta({ examples: [...canonicalValues] })
  }
}
