import * as z from 'zod'
import { type JsonBounds, parseBoundedJson } from '#kernel/bounded-json.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { PatchOperation } from '#protocols/admission/json-patch.ts'

/** What Kubernetes takes for an object at most. */
export const maxReviewBytes = 3 * 1024 * 1024
/** A pod and its old state, with all that controllers wrote on them. */
const reviewBounds: JsonBounds = { depth: 64, members: 5_000, elements: 10_000, values: 100_000 }
const maxWarnings = 16
const maxWarningLength = 240
const version = 'admission.k8s.io/v1'

const reviewSchema = z.looseObject({
  apiVersion: z.literal(version),
  kind: z.literal('AdmissionReview'),
  request: z.looseObject({
    uid: z.string().min(1).max(128),
    operation: z.string().max(64),
    kind: z.looseObject({ group: z.string(), version: z.string(), kind: z.string() }),
    subResource: z.string().optional(),
    namespace: z.string().max(253).optional(),
    dryRun: z.boolean().nullish(),
    object: z.unknown(),
  }),
})

export interface AdmissionRequest {
  readonly uid: string
  readonly operation: string
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  /** Such as `ephemeralcontainers`; empty for the object itself. */
  readonly subResource: string
  readonly namespace: string
  /** Nothing is stored, so nothing may be noted elsewhere. */
  readonly dryRun: boolean
  readonly object: unknown
}

/** Throws INVALID_JSON and BAD_REQUEST. */
export function parseReview(body: Buffer): AdmissionRequest {
  const { value } = parseBoundedJson(body, reviewBounds)
  const problem = structureProblem(value)
  if (problem !== undefined) throw notAReview(problem)
  const read = reviewSchema.safeParse(value)
  if (!read.success) {
    const [issue] = read.error.issues
    throw notAReview(issue === undefined ? 'it has another shape' : `${issue.path.join('.')}: ${issue.message}`)
  }
  const { uid, operation, kind, subResource = '', namespace = '', dryRun, object } = read.data.request
  return { uid, operation, kind, subResource, namespace, dryRun: dryRun === true, object }
}

const head =
  /^\{"kind":"AdmissionReview","apiVersion":"admission\.k8s\.io\/v1","request":\{"uid":"([-0-9A-Za-z]{1,64})"/

/** The uid of a review that `parseReview` throws for, if it is written as API servers write it: with the uid first. */
export const reviewUid = (body: Buffer): string | undefined => head.exec(body.toString('latin1', 0, 256))?.[1]

/** Searches without recursion: the depth is bounded, but the caller's stack is not known. */
function structureProblem(root: unknown): string | undefined {
  const pending = [root]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value !== 'object' || value === null) continue
    if (Object.hasOwn(value, '__proto__')) return 'it has a member named "__proto__"'
    for (const inner of Object.values(value)) pending.push(inner)
  }
  return undefined
}

const notAReview = (problem: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `not an admission review: ${problem}`, {
    publicText: `The body is not an AdmissionReview of ${version}.`,
  })

export interface AdmissionAnswer {
  readonly patch?: readonly PatchOperation[]
  readonly warnings?: readonly string[]
  /** Why the object is refused; it is admitted when absent. */
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

/** Warnings travel in an HTTP header to whoever runs kubectl, so they are short and plain. */
const warningText = (text: string): string => {
  const plain = text.replaceAll(/[^\x20-\x7e]/g, '?')
  return plain.length <= maxWarningLength ? plain : `${plain.slice(0, maxWarningLength - 3)}...`
}
