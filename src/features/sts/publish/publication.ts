import * as z from 'zod'
import type { PublishDestination } from '#config/configuration/token-keys.ts'
import { isForbiddenKey, type JsonObject } from '#kernel/json.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'

const record = z.object({
  /** The fingerprint of its current content. */
  documents: z.string().nullable(),
  /** The last success, in milliseconds since 1970. */
  done: z.number().nullable(),
  failures: z.number(),
  error: z.string().nullable(),
  retryAt: z.number().nullable(),
})

/** The state of the documents at one destination; or of reading them back, under `readBackName`. */
export type Publication = z.infer<typeof record>

export const readBackName = 'issuer'
/** The source of keys, while it provides no usable one. */
export const sourceName = 'key source'
export const noPublication: Publication = { documents: null, done: null, failures: 0, error: null, retryAt: null }

const firstRetrySeconds = 15
const mostRetrySeconds = 900
const mostErrorLength = 500

/** Names a destination in messages, records and metrics, without its secrets. */
export function destinationName(destination: PublishDestination): string {
  switch (destination.type) {
    case 'folder':
      return `folder ${destination.folder}`
    case 's3': {
      const { bucket, prefix, endpoint } = destination
      return `s3 ${endpoint === undefined ? '' : `${endpoint}/`}${bucket}/${prefix}`
    }
    case 'configmap':
      return `configmap ${destination.target}/${destination.namespace}/${destination.name}`
  }
}

/** Unreadable records count as none: everything is published again. */
export function readPublications(stored: JsonObject): Map<string, Publication> {
  const publications = new Map<string, Publication>()
  for (const [name, value] of Object.entries(stored)) {
    const { data } = record.safeParse(value)
    if (data !== undefined) publications.set(name, data)
  }
  return publications
}

export const publicationRecord = (publications: ReadonlyMap<string, Publication>): JsonObject =>
  Object.fromEntries([...publications].filter(([name]) => !isForbiddenKey(name)))

export const succeeded = (documents: string | null, now: number): Publication => ({
  ...noPublication,
  documents,
  done: now,
})

/** The next try, with growing pauses and not for all at the same time. `spread` is from 0 to 1. */
export function failed(before: Publication, thrown: unknown, now: number, spread: number): Publication {
  const failures = before.failures + 1
  const seconds = Math.min(firstRetrySeconds * 2 ** Math.min(failures - 1, 10), mostRetrySeconds)
  return {
    ...before,
    failures,
    error: withoutSecrets(reasonOf(thrown)).slice(0, mostErrorLength),
    retryAt: now + Math.round(seconds * (1 + spread / 4) * 1000),
  }
}

function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const text = thrown.message === '' && 'code' in thrown ? String(thrown.code) : thrown.message
  return thrown.name === 'Error' || thrown.name === 'GatewayError' ? text : `${thrown.name}: ${text}`
}
