import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** A configured target, as the process that answers sees it. */
export const consoleTarget = z.object({
  name: z.string(),
  className: z.string(),
  health: z
    .enum(['up', 'down', 'unchecked'])
    .describe('Whether it answered a lookup just now; unchecked if it has no lookups.'),
  millis: z.int().describe('How long the check took.').optional(),
  problem: z.string().describe('Why the check failed.').optional(),
  failures: z.int().describe('How many calls of this process failed since `since`.'),
  since: z.string().describe('When this process loaded the configuration.'),
  lastFailure: z.object({ time: z.string(), code: z.string(), message: z.string() }).optional(),
  incidents: z.int().describe('How many runs are incidents at this target.'),
})
export type ConsoleTarget = Wire<typeof consoleTarget>

/** GET admin/targets. */
export const consoleTargets = z.object({
  targets: z.array(consoleTarget).describe('By name.'),
  next: z.string().optional(),
})
export type ConsoleTargets = Wire<typeof consoleTargets>
