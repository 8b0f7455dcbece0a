import type { AuditStore } from '#audit/store/audit-store.ts'
import type { AccountOrigin } from '#sdk/target/target.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { RunProgress } from './run-progress.ts'

const maxRows = 500

/**
 * What a run that may only create accounts knows about accounts at the target; without an audit, only what it
 * recorded.
 */
export function accountOrigin(state: RunProgress, target: string, audit?: Pick<AuditStore, 'list'>): AccountOrigin {
  const { unique, created } = state.newAccount ?? { unique: [], created: [] }
  const indexOf = (userID: string): number =>
    created.findIndex((account) => account.target === target && account.userID === userID)
  return {
    unique,
    created,
    own: (userID) => created[indexOf(userID)],
    async earlierAttempt(userID) {
      const isThis = (row: { kind: string; attribute: string; target: string; value?: string | undefined }): boolean =>
        row.kind === 'entry' && row.target === target && sameLogin(row.value ?? userID, userID)
      const listed = await audit?.list({ workflowId: state.head.id, limit: maxRows })
      const rows = listed?.rows.filter((row) => isThis(row) && row.attribute !== 'name') ?? []
      const last = rows.toSorted((a, b) => a.time.getTime() - b.time.getTime()).at(-1)
      if (last !== undefined && last.action !== 'delete') return 'yes'
      return state.plannedChanges?.some((change) => isThis(change) && change.action === 'add') ? 'maybe' : 'no'
    },
    noteCreated(userID, id) {
      const account = { target, userID, ...(id === undefined ? {} : { id }) }
      const known = indexOf(userID)
      if (known < 0) created.push(account)
      else created[known] = account
    },
    noteDeleted(userID) {
      const known = indexOf(userID)
      if (known >= 0) created.splice(known, 1)
    },
  }
}
