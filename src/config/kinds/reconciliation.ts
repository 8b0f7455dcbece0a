import * as z from 'zod'
import { cronScheduleSchema } from './operations.ts'
import { mappingRuleSchema } from './provisioning.ts'

const name = z.string().min(1)
const groupNames = z.array(name).min(1).max(1000)

/** One object for each way to run a reconciliation's changes. */
const workflowsSchema = z.strictObject({
  create: name.optional(),
  change: name.optional(),
  deactivate: name.optional(),
  delete: name.optional(),
  removeMemberships: name.optional(),
})

export const reconciliationSchema = z.strictObject({
  description: z.string().max(1000).optional(),
  /** Who should have an account: exactly one of `target`, `gateway` and `directory`. */
  source: z.strictObject({
    target: name.optional(),
    /** The application with a SCIM gateway. */
    gateway: name.optional(),
    /** The base of a part of the virtual directory. */
    directory: name.optional(),
    /** The attribute of the directory with the logins. */
    login: name.optional(),
    filter: name.optional(),
    groups: groupNames.optional(),
  }),
  target: name,
  /** The accounts that may be touched. */
  scope: z.strictObject({ filter: name.optional(), groups: groupNames.optional() }).optional(),
  attributes: z.array(mappingRuleSchema).min(1).max(200).optional(),
  groups: z.union([z.enum(['all', 'none']), groupNames]).optional(),
  correlation: z
    .array(
      z.union([
        z.enum(['login']),
        z.strictObject({
          id: name.optional(),
          attribute: name.optional(),
          source: name.optional(),
          target: name.optional(),
        }),
      ]),
    )
    .min(1)
    .max(10)
    .optional(),
  missing: z.enum(['report', 'create']).optional(),
  different: z.enum(['report', 'change']).optional(),
  extra: z.enum(['report', 'deactivate', 'delete', 'removeMemberships']).optional(),
  ambiguous: z.enum(['report']).optional(),
  /** An account that matches counts as deactivated. */
  deactivated: name.optional(),
  /** The workflow for every change that `workflows` names none for. */
  workflow: name.optional(),
  workflows: workflowsSchema.optional(),
  limits: z
    .strictObject({
      percent: z.number().min(0).max(100).optional(),
      accounts: z.int().min(0).max(100_000_000).optional(),
    })
    .optional(),
  schedule: cronScheduleSchema.optional(),
  timeZone: name.optional(),
  apply: z.enum(['manual', 'automatic']).optional(),
  /** People of the source are compared soon after each change. */
  incremental: z.boolean().optional(),
})
export type ReconciliationSpec = z.infer<typeof reconciliationSchema>
