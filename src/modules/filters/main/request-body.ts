import * as z from 'zod'
import type { JsonBounds } from '#kernel/bounded-json.ts'
import { jsonBounds } from '#modules/shared/http/json-body.ts'

/** What people type: no character that a database cannot keep. */
export const typed = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must not have characters that cannot be kept')

/** Browsers' forms send it as text. */
export const yesOrNo = z
  .union([z.boolean(), z.enum(['true', 'false'])])
  .transform((value) => value === true || value === 'true')

export const maxReason = 2_000
const maxLines = 100
const maxSubjects = 500

const line = z.strictObject({
  uuid: z.string().regex(/^[\x21-\x7e]{1,100}$/),
  name: typed(256).min(1),
  reason: typed(maxReason).nullish(),
  encryptedParams: z.string().max(200).nullish(),
  expires: typed(64).nullish(),
  subjects: z.array(typed(256)).max(maxSubjects).nullish(),
  doPreApproval: yesOrNo.nullish(),
  approved: yesOrNo.nullish(),
  approvalReason: typed(maxReason).nullish(),
})

export const cartSchema = z
  .array(line)
  .min(1)
  .max(maxLines)
  .refine((lines) => new Set(lines.map(({ uuid }) => uuid)).size === lines.length, 'has a uuid twice')

export type CartLine = z.infer<typeof line>

export const maxCartBytes = 1024 * 1024
/** No list of a cart is nearly as long, so that a hostile one costs nothing. */
export const cartBounds: JsonBounds = { ...jsonBounds, elements: 2 * maxSubjects }
