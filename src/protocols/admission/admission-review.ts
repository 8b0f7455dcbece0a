import * as z from 'zod'
import { type JsonBounds, parseBoundedJson, reachesIntoPrototypes } from '#kernel/bounded-json.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'

/** The maximum size of a Kubernetes object. */
export const maxReviewBytes = 3 * 1024 * 1024
/** A pod and its old state, with everything that controllers wrote into them. */
const reviewBounds: JsonBounds = { depth: 64, members: 5_000, elements: 10_000, values: 100_000 }
const maxWarnings = 16
const maxWarningLength = 240
const version = 'admission.k8s.io/v1'

const requestSchema = z.object({
  uid: z.string().min(1).max(128),
  operation: z.string().max(64),
  kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
  /** Such as `ephemeralcontainers`; empty for the object itself. */
  subResource: z.string().default(''),
  namespace: z.string().max(253).default(''),
  /** A dry run: nothing is stored, so there must be no side effects. */
  dryRun: z
    .boolean()
    .nullish()
    .transform((value) => value === true),
  object: z.unknown(),
})

const reviewSchema = z.object({
  apiVersion: z.literal(version),
  kind: z.literal('AdmissionReview'),
  request: requestSchema,
})

export type AdmissionRequest = Readonly<z.output<typeof requestSchema>>

/** Throws INVALID_JSON and BAD_REQUEST. */
export function parseReview(body: Buffer): AdmissionRequest {
  const { value } = parseBoundedJson(body, reviewBounds)
  if (reachesIntoPrototypes(value)) throw notAReview('it has a member named "__proto__"')
  const read = reviewSchema.safeParse(value)
  if (read.success) return read.data.request
  const [issue] = read.error.issues
  throw notAReview(issue === undefined ? 'it has another shape' : `${issue.path.join('.')}: ${issue.message}`)
}

const head =
  /^\{"kind":"AdmissionReview","apiVersion":"admission\.k8s\.io\/v1","request":\{"uid":"([-0-9A-Za-z]{1,64})"/

/** The uid of a review for which `parseReview` throws, if it is written like API servers do: with the uid first. */
export const reviewUid = (body: Buffer): string | undefined => head.exec(body.toString('latin1', 0, 256))?.[1]

const notAReview = (problem: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `not an admission review: ${problem}`, {
    publicText: `The body is not an AdmissionReview of ${version}.`,
  })

export interface AdmissionAnswer {
  readonly patch?: readonly PatchOperation[]
  readonly warnings?: readonly string[]
  /** Why the object is refused; absent if it is admitted. */
  readonly refusal?: { readonly code: 400 | 403 | 422; readonly message: string }
}

export function reviewResponse(uid: string, { patch = [], warnings = [], refusal }: AdmissionAnswer): JsonValue {
  const shown = warnings.slice(0, maxWarnings).map(warningText)
  return {
    apiVersion: version,
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: refusal === undefined,
      ...(refusal === undefined ? {} : { status: { code: refusal.code, message: refusal.message } }),
      ...(refusal === undefined && patch.length > 0
        ? { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
        : {}),
      ...(shown.length > 0 ? { warnings: shown } : {}),
    },
  }
}

/** Warnings reach the user of kubectl in an HTTP header, so they are short and plain. */
const warningText = (text: string): string => {
  const plain = text.replaceAll(/[^\x20-\x7e]/g, '?')
  return plain.length <= maxWarningLength ? plain : `${plain.slice(0, maxWarningLength - 3)}...`
}

/** RFC 6902, of which only additions and replacements are used. */
interface PatchOperation {
  readonly op: 'add' | 'replace'
  readonly path: string
  readonly value: unknown
}

/**
 * The operations that turn `before` into `after`, both JSON. Members of lists are identified by their name or mount
 * path, so that inserted ones are added, and only changed ones are replaced. If something was removed, the whole
 * list or object around it is replaced.
 */
export function diffToPatch(before: unknown, after: unknown): PatchOperation[] {
  return difference(before, after, '')
}

function difference(before: unknown, after: unknown, path: string): PatchOperation[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    if (Object.keys(before).some((name) => !Object.hasOwn(after, name))) return [{ op: 'replace', path, value: after }]
    return Object.entries(after).flatMap(([name, value]) => {
      const inner = `${path}/${escapePointer(name)}`
      return Object.hasOwn(before, name)
        ? difference(before[name], value, inner)
        : [{ op: 'add' as const, path: inner, value }]
    })
  }
  if (isList(before) && isList(after)) return listDifference(before, after, path)
  return before === after ? [] : [{ op: 'replace', path, value: after }]
}

function listDifference(before: readonly unknown[], after: readonly unknown[], path: string): PatchOperation[] {
  const operations: PatchOperation[] = []
  let kept = 0
  for (const [position, value] of after.entries()) {
    const inner = `${path}/${position}`
    if (kept < before.length && isSameMember(before[kept], value)) {
      operations.push(...difference(before[kept], value, inner))
      kept += 1
    } else {
      operations.push({ op: 'add', path: inner, value })
    }
  }
  return kept === before.length ? operations : [{ op: 'replace', path, value: after }]
}

function isSameMember(a: unknown, b: unknown): boolean {
  const key = memberKey(a)
  return key === undefined ? isSame(a, b) : key === memberKey(b)
}

/** A volume may be mounted twice, so a mount is identified by its path. */
function memberKey(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined
  const key = value['mountPath'] ?? value['name']
  return typeof key === 'string' ? key : undefined
}

function isSame(a: unknown, b: unknown): boolean {
  if (isList(a) && isList(b)) {
    return a.length === b.length && a.every((value, position) => isSame(value, b[position]))
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const names = Object.keys(a)
    return (
      names.length === Object.keys(b).length &&
      names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
    )
  }
  return a === b
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)

/** RFC 6901. */
const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')
