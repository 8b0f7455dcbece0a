import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { workflowListItem } from './main.ts'
import { runState } from './main-requests.ts'

/** The user's own access, in the Main API. */

export const accessRequest = z
  .object({ id: z.string(), label: z.string() })
  .describe('The request that granted it. Absent if it is not known.')
export type AccessRequest = Wire<typeof accessRequest>

export const accessWorkflow = z
  .object({ name: z.string(), label: z.string(), accessEnds: workflowListItem.shape.accessEnds })
  .describe('The workflow that grants the same access again. Absent if the caller cannot request it.')
export type AccessWorkflow = Wire<typeof accessWorkflow>

const grant = z.object({
  id: z.string(),
  target: z.string(),
  kind: z.enum(['user', 'group']).describe('The account at the target as a whole, or one group.'),
  name: z.string(),
  granted: z.string(),
  request: accessRequest.optional(),
  workflow: accessWorkflow.optional(),
  pending: z.string().describe('The id of an open request for the same workflow.').optional(),
})

export const timedAccess = grant.extend({
  expires: z.string(),
  mayGiveBack: z.boolean(),
})
export type TimedAccess = Wire<typeof timedAccess>

export const groupAccess = z.object({
  name: z.string(),
  since: z.string().describe('Absent if no known request added the caller.').optional(),
  request: accessRequest.optional(),
  workflow: accessWorkflow.optional(),
})
export type GroupAccess = Wire<typeof groupAccess>

export const endedAccess = grant.extend({
  ended: z.string(),
  removal: runState
    .describe(
      'The state of the run that removes the access, which is gone once it is `completed`. Absent if not known.',
    )
    .optional(),
})
export type EndedAccess = Wire<typeof endedAccess>

/** GET access. */
export const ownAccess = z.object({
  access: z.array(timedAccess).describe('Access that expires, the soonest first.'),
  groups: z.array(groupAccess).describe('The other groups of the directory that the caller is a member of, by name.'),
  ended: z.array(endedAccess).describe('Access that ended and that the caller did not get again, latest first.'),
})
export type OwnAccess = Wire<typeof ownAccess>

/** POST access/{id}/return: 202, since a run removes the access. */
export const givenBackAccess = z.object({ request: z.string().describe('The run that removes the access.') })
export type GivenBackAccess = Wire<typeof givenBackAccess>
