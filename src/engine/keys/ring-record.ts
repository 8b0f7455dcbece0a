import * as z from 'zod'
import type { KeyRing } from '#engine/keys/key-ring.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { tokenAlgorithms } from '#kernel/signing-key.ts'

const time = z.number().nullable()

const record = z.object({
  keys: z
    .array(
      z.object({
        kid: z.string().min(1),
        alg: z.enum(tokenAlgorithms),
        state: z.enum(['next', 'active', 'retiring']),
        jwk: z.record(z.string(), z.string()),
        sealed: z.string().nullable(),
        given: z.boolean(),
        custody: z.object({ key: z.string(), version: z.number() }).nullable().default(null),
        created: z.number(),
        visible: time,
        activated: time,
        longest: z.number(),
        gone: time,
      }),
    )
    .min(1),
  cache: z.object({ seconds: z.number(), current: z.number(), shorterSince: time }).nullable(),
  looked: time,
  revoked: z.array(z.string()).default([]),
})

/** Throws INTERNAL for what is no ring: keys are neither guessed nor made anew, since tokens of the old ones are out. */
export function readRing(endpoint: string, stored: JsonObject): KeyRing {
  const { success, data, error } = record.safeParse(stored)
  if (success && data.keys.filter(({ state }) => state === 'active').length === 1) return data
  throw new GatewayError('INTERNAL', `the stored keys of endpoint "${endpoint}" are damaged`, { cause: error })
}

/** A ring is plain JSON already. */
export const ringRecord = (ring: KeyRing): JsonObject => record.parse(ring)
