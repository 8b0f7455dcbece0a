import type { CallHead, WorkflowCall } from '#sdk/workflow/workflow.ts'

/** A part of a call, with a part of its head. */
export type GivenCall = Partial<Omit<WorkflowCall, 'head'>> & { readonly head?: Partial<CallHead> }
