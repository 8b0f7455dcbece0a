import type { ForeseenChanges, ForeseenStep as Step } from '#contract/main-changes.ts'

export type { ForeseenAttribute, ForeseenEntry } from '#contract/main-changes.ts'

/** What would be done, as the contract has it, before its moments are written down. */
export type Foreseen = ForeseenChanges<Date>
export type ForeseenStep = Step<Date>
