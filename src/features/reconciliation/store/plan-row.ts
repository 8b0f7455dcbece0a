import { createHash } from 'node:crypto'
import { columns, dateOrNull, withoutNulls } from '#database/statement.ts'
import { lookupKey, storable } from '#database/text-keys.ts'
import type { PlanState, RowState } from '#features/reconciliation/contract/plan-words.ts'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { storedIdentity } from '#identity/identity.ts'
import type { ClaimedPlan, Plan, PlanCounts, PlanRow } from './plan-record.ts'

/** A row of `reconciliation_plans`. */
export interface StoredPlan {
  readonly id: string
  readonly reconciliation: string
  readonly state: PlanState
  readonly scheduled: number | null
  readonly requestedBy: string
  /** A truth value. */
  readonly automatic: number
  readonly reason: string | null
  readonly people: string | null
  readonly approved: number | null
  readonly approvedBy: string | null
  readonly approvedIdentity: string | null
  readonly approvedReason: string | null
  readonly counts: string
  readonly resumeAt: string | null
  readonly definition: string | null
  readonly problem: string | null
  readonly attempt: number
  readonly worker: string | null
  readonly fence: number
  readonly due: number | null
  readonly created: number
  readonly compared: number | null
  readonly ended: number | null
  readonly updated: number
}

export const planColumns = columns([
  'id',
  'reconciliation',
  'state',
  'scheduled',
  'requestedBy',
  'automatic',
  'reason',
  'people',
  'approved',
  'approvedBy',
  'approvedIdentity',
  'approvedReason',
  'counts',
  'resumeAt',
  'definition',
  'problem',
  'attempt',
  'worker',
  'fence',
  'due',
  'created',
  'compared',
  'ended',
  'updated',
])

export function toClaimedPlan(row: StoredPlan): ClaimedPlan {
  const { approved, approvedBy, approvedIdentity, approvedReason, counts, people, automatic, ...same } = row
  const { scheduled, due, created, compared, ended, updated } = same
  return {
    ...withoutNulls({
      ...same,
      scheduled: dateOrNull(scheduled),
      due: dateOrNull(due),
      compared: dateOrNull(compared),
      ended: dateOrNull(ended),
    }),
    created: new Date(created),
    updated: new Date(updated),
    isAutomatic: automatic === 1,
    counts: JSON.parse(counts) as PlanCounts,
    ...(people === null ? {} : { people: JSON.parse(people) as string[] }),
    ...(approved === null
      ? {}
      : {
          approval: {
            at: new Date(approved),
            by: approvedBy ?? '',
            ...(approvedIdentity === null ? {} : { identity: storedIdentity(approvedIdentity) }),
            ...(approvedReason === null ? {} : { reason: approvedReason }),
          },
        }),
  }
}

/** Without the checkpoint and the claim, which are for workers. */
export function toPlan(row: StoredPlan): Plan {
  const { fence: _, resumeAt: _at, definition: _definition, ...plan } = toClaimedPlan(row)
  return plan
}

/** A row of `reconciliation_rows`. */
export interface StoredPlanRow {
  readonly plan: string
  readonly number: number
  readonly rowKey: string
  readonly kind: string
  readonly action: string
  /** A truth value: it takes access away. */
  readonly removes: number
  readonly state: RowState
  readonly sourceKey: string | null
  readonly targetKey: string | null
  readonly difference: string
  readonly run: string | null
  readonly reason: string | null
  readonly attempt: number
  readonly due: number | null
  readonly updated: number
}

const planRowProperties = ['plan', 'number', 'state', 'difference', 'run', 'reason', 'updated'] as const
export type ReadPlanRow = Pick<StoredPlanRow, (typeof planRowProperties)[number]>
export const planRowColumns = columns(planRowProperties, 'r')

export const toPlanRow = ({ difference, updated, ...row }: ReadPlanRow): PlanRow => ({
  ...withoutNulls(row),
  difference: JSON.parse(difference) as Difference,
  updated: new Date(updated),
})

/** Longer keys do not fit into an index. */
const maxKey = 200

export const rowKeyOf = ({ key }: Difference): string =>
  storable(key.length <= maxKey ? key : `sha256:${createHash('sha256').update(key).digest('base64url')}`)

export const loginKeyOf = (login: string | undefined): string | null =>
  login === undefined ? null : lookupKey(storable(login))
