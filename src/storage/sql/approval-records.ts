import { formerIdentity, storedIdentity, type UserRef } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Approval, ApprovalState, ApprovalSummary } from '#storage/approval-store.ts'
import type { IdentityColumns } from '#storage/sql/run-records.ts'
import { identitiesIn } from '#storage/sql/run-records.ts'

/** With what the run says about it. */
export interface ApprovalRow extends IdentityColumns {
  readonly id: string
  readonly run: string
  readonly workflow: string
  readonly step: number
  readonly label: string
  readonly state: ApprovalState
  readonly subject: string
  readonly requestor: string
  readonly caller: string | null
  readonly reason: string | null
  readonly access_ends: number | null
  readonly new_account: number
  readonly opened: number
  readonly escalation: number
  readonly version: number
}

export interface WholeApprovalRow extends ApprovalRow {
  readonly decided: number | null
  readonly decided_by: string | null
  readonly decided_identity: string | null
  readonly on_behalf_of: string | null
  readonly comment: string | null
  readonly allow_self: number
  readonly rules: string
  readonly data: string
}

export const toApprovalSummary = (row: ApprovalRow): ApprovalSummary => ({
  id: row.id,
  run: row.run,
  workflow: row.workflow,
  step: row.step,
  label: row.label,
  state: row.state,
  subject: row.subject,
  requestor: row.requestor,
  ...(row.caller === null ? {} : { caller: row.caller }),
  who: identitiesIn(row),
  ...(row.reason === null ? {} : { reason: row.reason }),
  ...(row.access_ends === null ? {} : { accessEnds: new Date(row.access_ends) }),
  ...(row.new_account === 0 ? {} : { newAccount: true }),
  opened: new Date(row.opened),
  escalation: row.escalation,
  version: row.version,
})

export const toApproval = (row: WholeApprovalRow, approvers: readonly UserRef[]): Approval => ({
  ...toApprovalSummary(row),
  approvers,
  allowSelf: row.allow_self !== 0,
  rules: JSON.parse(row.rules) as JsonValue,
  data: JSON.parse(row.data) as JsonObject,
  ...(row.decided === null ? {} : { decided: new Date(row.decided) }),
  ...(row.decided_by === null ? {} : { decidedBy: deciderOf(row.decided_by, row.decided_identity) }),
  ...(row.on_behalf_of === null ? {} : { onBehalfOf: row.on_behalf_of }),
  ...(row.comment === null ? {} : { comment: row.comment }),
})

/** Decisions from before identities name a login only. */
const deciderOf = (login: string, identity: string | null): UserRef => ({
  login,
  identity: identity === null ? formerIdentity(login) : storedIdentity(identity),
})
