import * as z from 'zod'
import { azRulesSchema, paramsSchema, secretParamsSchema } from './envelope.ts'

const millis = z.int().min(0)

const filterSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
})

const identityProviderSchema = z.strictObject({
  className: z.string().min(1),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
  mappings: z
    .strictObject({
      strict: z.boolean().optional(),
      map: z
        .array(
          z.strictObject({
            targetAttributeName: z.string(),
            targetAttributeSource: z.string(),
            sourceType: z.enum(['user', 'static', 'composite', 'custom']),
          }),
        )
        .optional(),
    })
    .optional(),
  trusts: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        params: paramsSchema.optional(),
        secretParams: secretParamsSchema.optional(),
      }),
    )
    .optional(),
})

export const urlSchema = z.strictObject({
  hosts: z.array(z.string().min(1)).min(1),
  uri: z.string().min(1),
  regex: z.boolean().optional(),
  filterChain: z.array(filterSchema).optional(),
  authChain: z.string().optional(),
  azRules: azRulesSchema.optional(),
  results: z
    .strictObject({
      auSuccess: z.string().optional(),
      auFail: z.string().optional(),
      azSuccess: z.string().optional(),
      azFail: z.string().optional(),
    })
    .optional(),
  proxyTo: z.string().optional(),
  proxyConfiguration: z
    .strictObject({
      connectionTimeoutMillis: millis.optional(),
      requestTimeoutMillis: millis.optional(),
      socketTimeoutMillis: millis.optional(),
    })
    .optional(),
  overrideHost: z.boolean().optional(),
  overrideReferer: z.boolean().optional(),
  idp: identityProviderSchema.optional(),
})

const cookieConfigSchema = z.strictObject({
  sessionCookieName: z.string().optional(),
  domain: z.string().optional(),
  scope: z.int().optional(),
  logoutURI: z.string().optional(),
  keyAlias: z.string().optional(),
  timeout: z.int().optional(),
  secure: z.boolean().optional(),
  httpOnly: z.boolean().optional(),
  sameSite: z.enum(['None', 'Lax', 'Strict', 'Ignore']).optional(),
  cookiesEnabled: z.boolean().optional(),
})

/** Both versions have the same fields. */
export const applicationSchema = z.strictObject({
  azTimeoutMillis: millis.max(86_400_000).optional(),
  isApp: z.boolean().optional(),
  urls: z.array(urlSchema),
  cookieConfig: cookieConfigSchema.optional(),
})

/** The same with unparsed URLs, so that each is read separately and one invalid URL does not hide another. */
export const applicationFrameSchema = applicationSchema.extend({ urls: z.array(z.unknown()) })
export type ApplicationFrame = z.infer<typeof applicationFrameSchema>
export type UrlSpec = z.infer<typeof urlSchema>
export type CookieConfigSpec = z.infer<typeof cookieConfigSchema>

export const resultGroupSchema = z.array(
  z.strictObject({
    resultType: z.enum(['header', 'cookie', 'redirect']),
    source: z.enum(['static', 'user', 'custom']),
    value: z.string().min(1),
  }),
)
export type ResultGroupSpec = z.infer<typeof resultGroupSchema>
