import type { ScimCallCounts } from '#features/portal/contract/main-admin.ts'
import type { ScimCall } from '#features/scim/contract/journal.ts'

/** What became of a SCIM call, as statistics count it. */
export const callOutcome = ({ status }: Pick<ScimCall, 'status'>): keyof ScimCallCounts =>
  status < 400 ? 'answered' : status < 500 ? 'refused' : 'failed'

/** The class of its status. */
export const callTones = { answered: 'status-good', refused: 'status-waiting', failed: 'status-bad' } as const
