import { parseTrustedUrl } from '#kernel/issuer-url.ts'
import { compileJsonPath, type JsonPath } from '#kernel/json-path.ts'
import { flag, parsed, text, wholeNumber } from '#sdk/parameter-types.ts'
import type { Parameter, ParameterOptions, ParameterTable } from '#sdk/parameters.ts'
import { type BodyTemplate, parseBodyTemplate } from './body-template.ts'
import { type HeaderTemplate, isHeaderName, parseHeaderTemplate } from './header-template.ts'
import { type OperationName, operationNames, operations } from './operations.ts'
import { parseRequestTemplate, type RequestTemplate } from './request-template.ts'

/** A path, and the text that it was compiled from. */
export interface WrittenPath {
  readonly text: string
  readonly find: JsonPath
}

const path = (about: string, options: Partial<ParameterOptions> = {}): Parameter<WrittenPath | undefined> =>
  parsed('JSON path', (written) => ({ text: written, find: compileJsonPath(written) }), { about, ...options })

const request = (about: string, options: Partial<ParameterOptions> = {}): Parameter<RequestTemplate | undefined> =>
  parsed('request', parseRequestTemplate, { about, ...options })

const headerName = (about: string, fallback: string): Parameter<string> => ({
  ...text({ about, fallback }),
  read: ([value = ''], report) => {
    if (isHeaderName(value)) return value
    report(`"${value}" cannot be the name of a header`)
    return fallback
  },
})

const headers = (about: string): Parameter<readonly HeaderTemplate[]> => each(about, 'headers', parseHeaderTemplate)

const statuses = (about: string): Parameter<readonly number[]> =>
  each(about, 'statuses', (value) => {
    if (!/^[1-5]\d\d$/.test(value)) throw new Error(`"${value}" is no HTTP status`)
    return Number(value)
  })

function each<T>(about: string, type: string, parse: (value: string) => T): Parameter<readonly T[]> {
  return {
    about,
    type,
    many: true,
    fallback: [],
    read: (values, report) =>
      values.flatMap((value, i) => {
        try {
          return [parse(value)]
        } catch (error) {
          report(error instanceof Error ? error.message : String(error), i)
          return []
        }
      }),
  }
}

const required: ReadonlySet<OperationName> = new Set(['findUser', 'createUser', 'updateUser', 'deleteUser'])

const requests = Object.fromEntries(
  operationNames.map((name) => [name, request(operations[name].about, { required: required.has(name) })]),
) as Record<OperationName, Parameter<RequestTemplate | undefined>>

export const parameters = {
  url: parsed('https address', parseBaseUrl, { about: 'Where the API is; paths are below it.', required: true }),
  bearerToken: text({ about: 'Sent as `Authorization: Bearer`.', secret: true }),
  basicUser: text({ about: 'The user of `Authorization: Basic`.' }),
  basicPassword: text({ about: 'The password of `basicUser`.', secret: true }),
  apiKey: text({ about: 'Sent as `apiKeyHeader`.', secret: true }),
  apiKeyHeader: headerName('The header of `apiKey`.', 'X-Api-Key'),
  headers: headers('Headers of every request, such as `X-Tenant: acme`.'),
  signingSecret: text({ about: 'Every request is signed with it (HMAC-SHA256).', secret: true }),
  signatureHeader: headerName('The header of the signature.', 'X-Signature'),
  timestampHeader: headerName('The header of the time that is signed along.', 'X-Signature-Timestamp'),
  caFile: text({ about: 'A PEM file with the certificate authority of the API; the system’s own when absent.' }),
  certificate: text({ about: 'The certificate authority itself, as PEM text.' }),
  timeoutMillis: wholeNumber({
    about: 'How long a call may take, attempts and waits included.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
  }),
  retries: wholeNumber({ about: 'How often a call that failed is made again.', fallback: 3, min: 0, max: 10 }),
  idempotencyKeys: flag({
    about:
      '`"true"`: the API does a request with an `Idempotency-Key` it knows only once, so POST and PATCH are retried too.',
  }),
  connections: wholeNumber({ about: 'How many connections are open at most.', fallback: 10, min: 1, max: 100 }),
  maxAnswerKilobytes: wholeNumber({ about: 'The largest answer.', fallback: 4096, min: 1, max: 65_536 }),
  pageSize: wholeNumber({ about: 'The value of `{limit}`.', fallback: 100, min: 1, max: 10_000 }),
  firstPage: wholeNumber({ about: 'The first value of `{page}`.', fallback: 1, min: 0, max: 1 }),
  maxEntries: wholeNumber({
    about: 'How many users or groups a search reads at most; beyond that it is refused.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  'user.userID': path('The login in a user.', { required: true }),
  'user.id': path('The API’s own id; the login is the id when absent.'),
  'user.version': path('What changes with every change to the user.'),
  'user.created': path('When the user was created, as an ISO 8601 time.'),
  'user.modified': path('When the user was last changed, as an ISO 8601 time.'),
  'user.groups': path('The names of the user’s groups.'),
  'user.attribute.<name>': path('The values of an attribute in a user.'),
  'group.name': path('The name in a group.'),
  'group.id': path('The API’s own id; the name is the id when absent.'),
  'group.version': path('What changes with every change to the group.'),
  'group.created': path('When the group was created, as an ISO 8601 time.'),
  'group.modified': path('When the group was last changed, as an ISO 8601 time.'),
  'group.members': path('The members in a group.'),
  'group.attribute.<name>': path('The values of an attribute in a group.'),
  membersAreIds: flag({ about: '`"true"`: members are told by the users’ ids, else by their logins.' }),
  ...requests,
  'searchUsers.by.<attribute>': request('Lists the users who have `{value}` in this attribute.'),
  'searchGroups.by.<attribute>': request('Lists the groups that have `{value}` in this attribute.'),
  '<operation>.body': parsed<BodyTemplate>('JSON with places', parseBodyTemplate, {
    about: 'The body of the request.',
  }),
  '<operation>.headers': headers('More headers of the request, such as `If-Match: "{version}"`.'),
  '<operation>.items': path('Where in the answer the users, groups or names stand.'),
  '<operation>.total': path('Where in the answer of a list stands how many there are in all.'),
  '<operation>.next': path('Where in the answer of a list stands the next `{cursor}`.'),
  '<operation>.status': statuses('The statuses of success; any of 200 to 299 when absent.'),
  '<operation>.notFound': statuses('The statuses of "there is none"; 404 and 410 when absent.'),
} satisfies ParameterTable

function parseBaseUrl(written: string): URL {
  const url = parseTrustedUrl(written)
  if (url.search !== '' || url.hash !== '') throw new Error('must not hold a query or a fragment')
  return url
}
