import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { theme } from '#sdk/contract/theme.ts'

/** GET config. */
export const tokenConfig = z.object({
  frontPage: z.object({ title: z.string(), text: z.string() }),
  homeURL: z.string(),
  logoutURL: z.string(),
  qrCodeAttribute: z.string().describe('The member of `token` that is to be shown as a QR code as well.').optional(),
  warnMinutesLeft: z.int(),
  ...theme.shape,
  headerTitle: z.string(),
})
export type TokenConfig = Wire<typeof tokenConfig>

/** The state of a session's tokens. */
export const tokenState = z.object({
  idToken: z.enum(['valid', 'expired']),
  refreshToken: z
    .enum(['unused', 'used', 'ended', 'none'])
    .describe(
      '`unused`: shown and not used yet. `used`: already used. `ended`: no longer valid. `none`: there is no code.',
    ),
  refreshExpires: z.string().describe('When the refresh token ends at the latest, ISO 8601.').optional(),
  renewable: z
    .boolean()
    .describe('Whether POST makes new ones; otherwise there are new ones after logging out and in.'),
})
export type TokenState = Wire<typeof tokenState>

/** GET and POST user. */
export const tokenUser = z.object({
  displayName: z.string().describe('`Unknown` where the person has no such attribute.'),
  token: z.record(z.string(), z.string()).describe('What is to be shown, by label.'),
  expires: z.string().describe('When the id_token ends, ISO 8601; absent where there is none.').optional(),
  claims: z.record(z.string(), z.unknown()).describe('What the id_token says.').optional(),
  state: tokenState.optional(),
})
export type TokenUser = Wire<typeof tokenUser>

/** The body of every failure. */
export const tokenErrors = z.object({
  errors: z.array(z.string()).describe('For people.'),
  code: z.string().optional(),
  requestId: z.string().optional(),
})
export type TokenErrors = Wire<typeof tokenErrors>
