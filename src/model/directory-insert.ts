import * as z from 'zod'
import { paramsSchema, secretParamsSchema } from '#model/params.ts'

export const directoryInsertSchema = z.strictObject({
  className: z.string().min(1),
  suffix: z.string().min(1),
  order: z.int().min(0).max(1_000_000).optional(),
  params: paramsSchema.optional(),
  secretParams: secretParamsSchema.optional(),
  /** Names of attributes in the directory, and what the system calls them. */
  mapping: z.record(z.string().min(1), z.string().min(1)).optional(),
})
export type DirectoryInsertSpec = z.infer<typeof directoryInsertSchema>
