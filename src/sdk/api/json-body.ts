import * as z from 'zod'
import { duplicateMember, type JsonBounds, parseBoundedJson, reachesIntoPrototypes } from '#kernel/bounded-json.ts'
import { type FieldProblem, GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'

const maxProblems = 20
const maxShownName = 80
/** More than any request of these APIs needs, and few enough to check one by one. */
export const jsonBounds: JsonBounds = { depth: 16, members: 1_000, elements: 2_000, values: 60_000 }

/** Text that every database can store; it may have several lines. */
export const storableText = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must not have characters that cannot be kept')

/** Why an operator changes something: it is in the audit, so blanks do not count. */
export const reasonText = storableText(2_000)
  .min(1)
  .refine((text) => text.trim() !== '', 'must not be empty')

const typeWords: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

/**
 * The body by its schema. Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, INVALID_JSON, also for a body beyond the
 * bounds, which the schema never sees, and BAD_REQUEST with the members that are unknown, missing or wrong.
 */
export async function readJsonBody<T>(
  request: GatewayRequest,
  schema: z.ZodType<T>,
  limit: number,
  bounds: JsonBounds = jsonBounds,
): Promise<T> {
  requireJson(request)
  const value = parse(await request.body(limit), bounds)
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw badBody(firstProblems(read.error.issues))
}

/** Throws UNSUPPORTED_MEDIA_TYPE for a body that is not JSON. */
export function requireJson(request: GatewayRequest): void {
  const type = header(request, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type === 'application/json') return
  throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${type ?? ''}"`, {
    publicText: 'The body must be application/json.',
  })
}

function parse(body: Buffer, bounds: JsonBounds): unknown {
  const { value, text } = parseBoundedJson(body, bounds)
  if (reachesIntoPrototypes(value)) throw badBody([{ pointer: '', detail: 'has a member named "__proto__"' }])
  if (duplicateMember(text) !== undefined) throw badBody([{ pointer: '', detail: 'has a member that is there twice' }])
  return value
}

function badBody(problems: readonly FieldProblem[]): GatewayError {
  const list = problems.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
  return new GatewayError('BAD_REQUEST', `the request body is invalid: ${list}`, {
    publicText: 'The request body is invalid.',
    problems,
  })
}

/** As many as a user reads; the rest is ignored. */
function firstProblems(issues: readonly z.core.$ZodIssue[]): FieldProblem[] {
  return issues.slice(0, maxProblems).flatMap(problemsOf).slice(0, maxProblems)
}

function problemsOf(issue: z.core.$ZodIssue): FieldProblem[] {
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.slice(0, maxProblems)
    return keys.map((key) => ({ pointer: jsonPointer([...issue.path, key]), detail: 'is not known here' }))
  }
  return [{ pointer: jsonPointer(issue.path), detail: detailOf(issue) }]
}

function detailOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.message.endsWith('received undefined')
        ? 'is required'
        : `must be ${typeWords[issue.expected] ?? issue.expected}`
    case 'too_big':
      return `is longer or larger than ${issue.maximum}`
    case 'too_small':
      return `is shorter or smaller than ${issue.minimum}`
    case 'custom':
      return issue.message
    default:
      return 'is not a value that can be used here'
  }
}

/** RFC 6901. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path
    .map((part) => String(part).slice(0, maxShownName).replaceAll('~', '~0').replaceAll('/', '~1'))
    .map((part) => `/${part}`)
    .join('')
}
