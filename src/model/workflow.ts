import * as z from 'zod'
import { paramsSchema } from '#model/params.ts'

/** Both versions have the same fields. What a task may hold is its module's business. */
export const workflowSchema = z.strictObject({
  label: z.string().optional(),
  description: z.string().optional(),
  inList: z.boolean().optional(),
  orgId: z.string().optional(),
  dynamicConfiguration: z
    .strictObject({
      dynamic: z.boolean().optional(),
      className: z.string().optional(),
      params: paramsSchema.optional(),
      filterAnnotations: z
        .array(z.strictObject({ name: z.string(), requestObjectName: z.string().optional() }))
        .optional(),
    })
    .optional(),
  /** Request parameters that tasks read otherwise than as `$name$`. */
  parameters: z.array(z.string()).optional(),
  /** Whoever asks for it chooses when the access ends; `longest` is a length of time. */
  accessEnds: z
    .strictObject({ choose: z.enum(['optional', 'required']).optional(), longest: z.string().optional() })
    .optional(),
  /** How long a run may take, from its start; a length of time. */
  deadline: z.string().optional(),
  /** A list, or the YAML text of one. */
  tasks: z.union([z.string(), z.array(z.unknown())]),
})
export type WorkflowSpec = z.infer<typeof workflowSchema>
