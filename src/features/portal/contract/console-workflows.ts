import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { runState } from './main-requests.ts'

/** A configured workflow, as administrators see it. */
export const consoleWorkflow = z.object({
  name: z.string(),
  label: z.string(),
  description: z.string(),
  org: z.string().optional(),
  inList: z.boolean().describe('Users can request it in the portal.'),
  definition: z.string().describe('The hash of its definition.'),
  open: z.partialRecord(runState, z.int()).describe('How many runs have not ended, by state.').optional(),
})
export type ConsoleWorkflow = Wire<typeof consoleWorkflow>

/** GET admin/workflows. */
export const consoleWorkflows = z.object({
  workflows: z.array(consoleWorkflow).describe('By name.'),
  next: z.string().optional(),
})
export type ConsoleWorkflows = Wire<typeof consoleWorkflows>

/** A task of a definition, without the values that it writes. */
export const consoleTask = z.object({
  place: z.string().describe('As the steps of runs name it.'),
  taskType: z.string(),
  details: z.record(z.string(), z.string()).describe('Which one it is: label, name, target or className.'),
  timeoutMillis: z.number().optional(),
  calls: z.array(z.string()).describe('The workflows that it calls.'),
  get onSuccess() {
    return z.array(consoleTask)
  },
  get onFailure() {
    return z.array(consoleTask)
  },
})
export type ConsoleTask = Wire<typeof consoleTask>

/** GET admin/workflows/{name}?definition=. */
export const consoleDefinition = consoleWorkflow.omit({ open: true }).extend({
  current: z.boolean().describe('False for an earlier definition that runs still follow.'),
  tasks: z.array(consoleTask),
})
export type ConsoleDefinition = Wire<typeof consoleDefinition>
