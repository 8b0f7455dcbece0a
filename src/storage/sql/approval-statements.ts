import { sql } from 'kysely'
import type { ApprovalState } from '#storage/approval-store.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { ApprovalRow, WholeApprovalRow } from '#storage/sql/approval-records.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { type Builder, fixed, fixedInserts, fixedLists } from '#storage/sql/queries.ts'

export const maxPage = 500
export const maxApprovers = 1000

const open = sql.lit<ApprovalState>('open')

const withRun = (db: Builder) =>
  db
    .selectFrom('approvals as approval')
    .innerJoin('runs as run', 'run.id', 'approval.run')
    .select([
      'approval.id',
      'approval.run',
      'run.name as workflow',
      'approval.step',
      'approval.label',
      'approval.state',
      'run.subject',
      'run.requestor',
      'run.caller',
      'run.requestor_identity',
      'run.caller_identity',
      'run.subject_identity',
      'run.reason',
      'approval.access_ends',
      'approval.new_account',
      'approval.opened',
      'approval.escalation',
      'approval.version',
    ])

interface NewRow {
  readonly id: string
  readonly run: string
  readonly step: number
  readonly label: string
  readonly opened: number
  readonly allow_self: number
  readonly rules: string
  readonly data: string
  readonly access_ends: number | null
  readonly new_account: number
}

export const approverColumns = ['approval', 'approver_key', 'approver', 'open'] as const

type ApproverRow = {
  readonly [K in (typeof approverColumns)[number]]: K extends 'open' ? number : string
}

interface Decide {
  readonly id: string
  readonly state: ApprovalState
  readonly decided: number
  readonly decided_by: string | null
  readonly decided_identity: string | null
  readonly on_behalf_of: string | null
  readonly comment: string | null
}

export const approvalStatements = perDialect((dialect) => ({
  insert: fixed<NewRow, unknown>(dialect, (db, at) =>
    db.insertInto('approvals').values({
      id: at('id'),
      run: at('run'),
      step: at('step'),
      label: at('label'),
      state: open,
      opened: at('opened'),
      allow_self: at('allow_self'),
      rules: at('rules'),
      data: at('data'),
      access_ends: at('access_ends'),
      new_account: at('new_account'),
      escalation: 0,
      version: 1,
    }),
  ),
  insertApprovers: fixedInserts<ApproverRow>(dialect, approverColumns, (db, rows) =>
    db.insertInto('approval_approvers').values(rows),
  ),
  removeApprovers: fixed<{ approval: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('approval_approvers').where('approval', '=', at('approval')),
  ),
  closeApprovers: fixed<{ approval: string }, unknown>(dialect, (db, at) =>
    db.updateTable('approval_approvers').set({ open: 0 }).where('approval', '=', at('approval')),
  ),
  decide: fixed<Decide, unknown>(dialect, (db, at) =>
    db
      .updateTable('approvals')
      .set((eb) => ({
        state: at('state'),
        decided: at('decided'),
        decided_by: at('decided_by'),
        decided_identity: at('decided_identity'),
        on_behalf_of: at('on_behalf_of'),
        comment: at('comment'),
        version: eb('version', '+', 1),
      }))
      .where('id', '=', at('id'))
      .where('state', '=', open),
  ),
  reassign: fixed<{ id: string; rules: string; escalation: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('approvals')
      .set((eb) => ({ rules: at('rules'), escalation: at('escalation'), version: eb('version', '+', 1) }))
      .where('id', '=', at('id'))
      .where('state', '=', open),
  ),
  openOfRun: fixed<{ run: string }, { id: string }>(dialect, (db, at) =>
    db.selectFrom('approvals').select('id').where('run', '=', at('run')).where('state', '=', open),
  ),
  runOf: fixed<{ id: string }, { run: string }>(dialect, (db, at) =>
    db.selectFrom('approvals').select('run').where('id', '=', at('id')),
  ),
}))

/** One approver's open approvals: one range of the index, as long as the page. */
export const approverPage = perDialect((dialect) =>
  fixed<{ approver_key: string; after: string; limit: number }, { approval: string }>(dialect, (db, at) =>
    db
      .selectFrom('approval_approvers')
      .select('approval')
      .where('approver_key', '=', at('approver_key'))
      .where('open', '=', sql.lit(1))
      .where('approval', '>', at('after'))
      .orderBy('approval')
      .limit(at('limit')),
  ),
)

export const approvalReads = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    get: fixed<{ id: string }, WholeApprovalRow>(dialect, (db, at) =>
      withRun(db)
        .select([
          'approval.decided',
          'approval.decided_by',
          'approval.decided_identity',
          'approval.on_behalf_of',
          'approval.comment',
          'approval.allow_self',
          'approval.rules',
          'approval.data',
        ])
        .where('approval.id', '=', at('id')),
    ),
    approvers: fixed<{ approval: string }, { approver: string; approver_key: string }>(dialect, (db, at) =>
      db
        .selectFrom('approval_approvers')
        .select(['approver', 'approver_key'])
        .where('approval', '=', at('approval'))
        .orderBy('approver_key')
        .limit(maxApprovers),
    ),
    ofRun: fixed<{ run: string }, ApprovalRow>(dialect, (db, at) =>
      withRun(db).where('approval.run', '=', at('run')).orderBy('approval.id').limit(maxPage),
    ),
    byIds: fixedLists<object, string, ApprovalRow>(dialect, (db, _at, ids) =>
      withRun(db).where('approval.id', 'in', ids).where('approval.state', '=', open),
    ),
    allOpen: fixed<{ before: number; after: string; limit: number }, ApprovalRow>(dialect, (db, at) =>
      withRun(db)
        .where('approval.state', '=', open)
        .where('approval.opened', '<', at('before'))
        .where('approval.id', '>', at('after'))
        .orderBy('approval.id')
        .limit(at('limit')),
    ),
    figures: fixed<object, { count: number; age: number | null }>(dialect, (db) =>
      db
        .selectFrom('approvals')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .select(sql<number | null>`${now} - min(opened)`.as('age'))
        .where('state', '=', open),
    ),
  }
})
