import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { theme } from '#sdk/contract/theme.ts'

/** GET password/config. */
export const ownPasswordConfig = z.object({
  config: z.object({
    frontPage: z.object({ title: z.string(), text: z.string() }),
    logoutURL: z.string(),
    homeURL: z.string(),
    uidAttribute: z.string(),
    reason: z.string(),
    ...theme.shape,
    headerTitle: z.string(),
    runSynchronously: z.boolean(),
  }),
  displayName: z.string(),
  logoutURL: z.string(),
  homeURL: z.string(),
})
export type OwnPasswordConfig = Wire<typeof ownPasswordConfig>

/** POST password/submit: `accepted` and `waiting` if the password is not set yet. */
export const ownPasswordAnswer = z.object({ status: z.enum(['completed', 'accepted', 'waiting']) })
export type OwnPasswordAnswer = Wire<typeof ownPasswordAnswer>
