import type { ForeseenChanges, ForeseenStep as Step } from '#contract/main-requests.ts'

export type { ForeseenAttribute, ForeseenEntry } from '#contract/main-requests.ts'

/** What would be done, as the contract has it, before its moments are written down. */
export type Foreseen = ForeseenChanges<Date>
export type ForeseenStep = Step<Date>
