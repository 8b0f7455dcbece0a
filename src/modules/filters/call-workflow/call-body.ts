import * as z from 'zod'

/** Texts that are stored and shown as one line; what people type into a field. */
const line = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), 'must not have control characters')

/** Values may have several lines, but no character that a database cannot keep. */
const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'must not have characters that cannot be kept')

const name = (max: number) => line(max).min(1)

/** A login that is shown as it is compared: none that reads like another one. */
export const isLogin = (login: string): boolean =>
  login !== '' && login.trim() === login && login.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(login)

const attribute = z.strictObject({ name: name(256), values: z.array(text(20_000)).max(1_000) })

/** What a call consists of: spec 2.4. `dn` and `directory` are accepted, since callers send them, and not used. */
export const callSchema = z.strictObject({
  requestor: z.string().max(256).refine(isLogin, 'must be a login').optional(),
  name: name(256),
  uidAttributeName: name(256),
  user: z.strictObject({
    uid: line(256).optional(),
    dn: line(2_000).optional(),
    directory: line(256).optional(),
    attributes: z.array(attribute).max(500),
    groups: z.array(name(1_000)).max(2_000).optional(),
    userPassword: text(1_000).min(1).optional(),
  }),
  reason: text(2_000).optional(),
  requestParams: z
    .record(z.string(), text(20_000))
    .refine((params) => Object.keys(params).length <= 100, 'has more than 100 members')
    .optional(),
})

export type CallBody = z.infer<typeof callSchema>

export const maxBodyBytes = 1024 * 1024
