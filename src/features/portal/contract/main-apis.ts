import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** An API of the running configuration. */
export const apiEntry = z.object({
  name: z.string().describe('For the address of its documents.'),
  title: z.string(),
  application: z.string().describe('The Application that serves it.'),
  addresses: z.array(z.string()).describe('Where it is; the host of this request first.'),
  authentication: z
    .array(z.enum(['bearer', 'session']))
    .describe('What callers sign in with. Empty: nothing. Absent: the configuration does not show it.')
    .optional(),
  documents: z.array(z.enum(['openapi.json', 'swagger.json'])).describe('The documents of GET apis/{name}/{document}.'),
})
export type ApiEntry = Wire<typeof apiEntry>

/** GET apis. */
export const apiList = z.object({ apis: z.array(apiEntry).describe('By title.') })
export type ApiList = Wire<typeof apiList>

/** GET apis/{name}/{document}: OpenAPI 3.1 or Swagger 2.0. */
export const apiDocument = z.looseObject({ info: z.object({ title: z.string(), version: z.string() }) })
