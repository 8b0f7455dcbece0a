import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** The body of every failure. */
export const mainErrors = z.object({
  errors: z.array(z.string()).describe('For people.'),
  code: z.string().optional(),
  requestId: z.string().optional(),
})
export type MainErrors = Wire<typeof mainErrors>
