import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/**
 * Answers name users by login, since logins are what other calls take. This member has their display names, once for
 * each user of the answer.
 */
export const personNames = z
  .record(z.string(), z.string())
  .describe('Display names by login, of the users of this answer who are in the directory now.')
export type PersonNames = Wire<typeof personNames>
