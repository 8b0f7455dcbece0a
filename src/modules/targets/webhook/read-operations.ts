import type { Issues } from '#kernel/issues.ts'
import { compileJsonPath } from '#kernel/json-path.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { ParsedParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { BodyTemplate } from './body-template.ts'
import type { HeaderTemplate } from './header-template.ts'
import { isWritten, type Operation, type Operations } from './operation.ts'
import { isOperation, kindOf, type OperationName, operationNames } from './operations.ts'
import type { parameters } from './parameter-table.ts'
import type { RequestTemplate } from './request-template.ts'
import type { Narrowings } from './webhook-config.ts'

export type Given = ParsedParameters<typeof parameters>

const details = ['body', 'headers', 'items', 'total', 'next', 'status', 'notFound'] as const
const listOnly: ReadonlySet<string> = new Set(['total', 'next'])
const usuallyNotFound = [404, 410]

/** The requests with all that belongs to each; whatever does not fit together is reported where it stands. */
export function readOperations(given: Given, params: Params, issues: Issues): Operations {
  for (const detail of details) {
    for (const name of given[`<operation>.${detail}`].keys()) reportMisplaced(name, detail, given, params, issues)
  }
  const found: Partial<Record<OperationName, Operation>> = {}
  for (const name of operationNames) {
    const request = given[name]
    if (request !== undefined) found[name] = readOperation(name, request, given, params, issues)
  }
  return found
}

function reportMisplaced(name: string, detail: string, given: Given, params: Params, issues: Issues): void {
  const at = params.pathOf(`${name}.${detail}`)
  if (!isOperation(name)) {
    issues.error(
      at,
      `unknown parameter "${name}.${detail}": no request is called "${name}"${suggestion(name, operationNames)}`,
    )
  } else if (given[name] === undefined && !isWritten(params, name)) {
    issues.error(at, `"${name}.${detail}" belongs to "${name}", which is not there`)
  } else if (listOnly.has(detail) && kindOf(name).answer !== 'list') {
    issues.error(at, `"${name}.${detail}": only a list has a ${detail}`)
  } else if (detail === 'items' && kindOf(name).answer === undefined) {
    issues.error(at, `"${name}.items": nothing is read from the answer`)
  }
}

function readOperation(
  name: OperationName,
  request: RequestTemplate,
  given: Given,
  params: Params,
  issues: Issues,
): Operation {
  const kind = kindOf(name)
  const body = given['<operation>.body'].get(name)
  const headers = given['<operation>.headers'].get(name) ?? []
  const statuses = given['<operation>.status'].get(name) ?? []
  const notFound = given['<operation>.notFound'].get(name) ?? []
  const known: readonly string[] = kind.places
  const check = (place: string, parameter: string): void => {
    if (known.includes(place)) return
    issues.error(
      params.pathOf(parameter),
      `"${parameter}": there is no {${place}} here${suggestion(place, known)}; there is ${known.map((p) => `{${p}}`).join(', ')}`,
    )
  }
  for (const place of request.places) check(place, name)
  for (const place of headers.flatMap(({ places }) => places)) check(place, `${name}.headers`)
  if (body !== undefined && kind.attributes === undefined) {
    for (const place of new Set(body.places.map((p) => p.name))) check(place, `${name}.body`)
  }
  if (body !== undefined && request.method === 'GET') {
    issues.error(params.pathOf(`${name}.body`), `"${name}.body": a GET request has no body`)
  }
  if (kind.answer === undefined && request.method === 'GET') {
    issues.error(params.pathOf(name), `"${name}": GET changes nothing; it must be POST, PUT, PATCH or DELETE`)
  }
  if (name === 'setPassword') reportPassword(request, headers, body, params, issues)
  const written = given['<operation>.items'].get(name)
  return {
    name,
    request,
    headers,
    body,
    items: written?.find ?? compileJsonPath(kind.answer === 'list' ? '$[*]' : '$'),
    total: given['<operation>.total'].get(name)?.find,
    next: given['<operation>.next'].get(name)?.find,
    statuses: statuses.length === 0 ? undefined : new Set(statuses),
    notFound: new Set(notFound.length === 0 ? usuallyNotFound : notFound),
  }
}

/** Addresses and headers are logged on the way, so a password stands in the body. */
function reportPassword(
  request: RequestTemplate,
  headers: readonly HeaderTemplate[],
  body: BodyTemplate | undefined,
  params: Params,
  issues: Issues,
): void {
  if ([request, ...headers].some(({ places }) => places.includes('password'))) {
    issues.error(params.pathOf('setPassword'), '"setPassword": {password} may stand in the body only')
  }
  if (!body?.places.some(({ name }) => name === 'password')) {
    issues.error(params.pathOf('setPassword'), '"setPassword.body" with a place for {password} is required')
  }
}

/** The requests that narrow a search; each is a request of `{value}` and the places of pages. */
export function readNarrowings(
  search: 'searchUsers' | 'searchGroups',
  given: Given,
  params: Params,
  issues: Issues,
): Narrowings {
  const narrowings = new Map<string, RequestTemplate>()
  for (const [attribute, request] of given[`${search}.by.<attribute>`]) {
    const parameter = `${search}.by.${attribute}`
    if (request === undefined) continue
    const at = params.pathOf(parameter)
    const known = ['value', ...kindOf(search).places]
    for (const place of request.places.filter((name) => !known.includes(name))) {
      issues.error(at, `"${parameter}": there is no {${place}} here${suggestion(place, known)}`)
    }
    if (!request.places.includes('value')) issues.error(at, `"${parameter}" needs a place for {value}`)
    if (given[search] === undefined) issues.error(at, `"${parameter}" belongs to "${search}", which is not there`)
    narrowings.set(attribute.toLowerCase(), request)
  }
  return narrowings
}
