import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** One call of a SCIM client, as its operator sees it. */
export const scimCall = z.object({
  id: z.int(),
  gateway: z.string().describe('The Application of the gateway.'),
  time: z.string(),
  requestId: z.string(),
  caller: z.string(),
  method: z.string(),
  path: z.string(),
  status: z.int(),
  scimType: z.string().optional(),
  error: z.string().optional(),
  millis: z.number(),
  workflows: z.array(z.string()),
  operations: z.unknown().optional(),
  dryRun: z.literal(true).describe('The call only showed what it would do.').optional(),
})
export type ScimCall = Wire<typeof scimCall>

/** GET admin/scim-journal?gateway=&failed=&status=&since=&limit=&after=. */
export const scimJournalPage = z.object({
  entries: z.array(scimCall).describe('Latest first.'),
  next: z.string().optional(),
})
export type ScimJournalPage = Wire<typeof scimJournalPage>
