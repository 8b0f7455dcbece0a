import { defaultLimits } from '#engine/workflow/run-worker.ts'
import { wholeNumber } from '#server/commands/whole-number.ts'
import type { WorkflowLimits } from '#server/gateway.ts'

export const workflowLimitUsage = `  --workflow-attempts N       attempts of a step before it is an incident (${defaultLimits.retries.attempts})
  --workflow-lease-seconds N  how long a run is held by a process that says nothing (${defaultLimits.leaseMillis / 1000})
  --workflow-step-seconds N   how long a step may take (${defaultLimits.stepMillis / 1000})
  --workflow-parallel N       stored runs that this process executes at a time (${defaultLimits.atOnce})`

export const workflowLimitOptions = {
  'workflow-attempts': { type: 'string' },
  'workflow-lease-seconds': { type: 'string' },
  'workflow-step-seconds': { type: 'string' },
  'workflow-parallel': { type: 'string' },
} as const

type Values = { readonly [name in keyof typeof workflowLimitOptions]?: string | undefined }

/** Throws an Error that says what is wrong. */
export function readWorkflowLimits(values: Values): WorkflowLimits {
  const read = (name: keyof Values, min: number, max: number, fallback: number): number => {
    const text = values[name]
    if (text === undefined) return fallback
    const number = wholeNumber(text, min, max)
    if (number === undefined) throw new Error(`--${name} must be a whole number from ${min} to ${max}`)
    return number
  }
  const { retries, leaseMillis, stepMillis, atOnce } = defaultLimits
  return {
    attempts: read('workflow-attempts', 1, 100, retries.attempts),
    leaseMillis: 1000 * read('workflow-lease-seconds', 5, 3600, leaseMillis / 1000),
    stepMillis: 1000 * read('workflow-step-seconds', 1, 86_400, stepMillis / 1000),
    atOnce: read('workflow-parallel', 1, 1000, atOnce),
  }
}
