import * as z from 'zod'
import {
  type ConsoleReassigned,
  type ConsoleReassignment,
  consoleApproval,
} from '#features/portal/contract/console-approvals.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery, readTime } from '#features/portal/runs/list-answer.ts'
import { usersOfItem } from '#features/portal/runs/person-names.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { isInvolvedIn } from '#workflows/approvals/decision-influence.ts'
import { operatorOf } from '#workflows/record/operator.ts'
import { wireHead } from '#workflows/record/wire-head.ts'

const maxBodyBytes = 16 * 1024

export const reassignSchema = z.strictObject({
  version: z.int().min(1),
  to: storableText(500).min(1).describe('The login of the new approver'),
  reason: reasonText,
})

/** The open approvals of all users. */
export const approvalOperations = {
  listOpenApprovals: {
    summary: 'Open approvals of all users',
    query: {
      workflow: 'Only of this workflow',
      approver: 'The login of a user who may decide them',
      overdue: 'Such as 3d: only approvals that have been open for that long, or were escalated',
      ...listQuery,
    },
    answer: 'ConsoleApprovals',
    handle: listApprovals,
  },
  assignApproval: {
    summary: 'Gives an open approval to another approver',
    body: 'Reassignment',
    answer: 'ConsoleReassigned',
    failures: { '409': 'It is no longer open', '412': 'It has changed' },
    handle: reassign,
  },
} satisfies OperationTable<MainParts>

async function listApprovals({ host, names }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const operator = operatorOf(exchange.subject)
  return await answerList(exchange, ['workflow', 'approver', 'overdue'], ({ workflow, approver, overdue }) => {
    const overdueSince = readTime('overdue', overdue, host.clock())
    const filter = {
      ...(workflow[0] === undefined ? {} : { workflow: workflow[0] }),
      ...(approver[0] === undefined ? {} : { approver: approver[0] }),
      ...(overdueSince === undefined ? {} : { overdueSince }),
    }
    return {
      name: 'approvals',
      names,
      read: async (page) => {
        const { approvals, next } = await host.approvals.listOpen({ ...filter, ...page })
        return {
          rows: approvals.map((one) =>
            wireForm(consoleApproval, {
              ...wireHead(one.run),
              ...one,
              run: one.run.id,
              workflow: one.run.workflow,
              involvesCaller: isInvolvedIn(one.run, operator),
            }),
          ),
          next,
          users: approvals.flatMap((one) => [...usersOfItem(one), ...one.approvers.map((login) => ({ login }))]),
        }
      },
      columns: {
        id: ({ id }) => id,
        request: ({ run }) => run,
        workflow: (row) => row.workflow,
        label: ({ label }) => label,
        subject: ({ subject }) => subject,
        requester: ({ requestor }) => requestor,
        submittedBy: ({ caller }) => caller,
        reason: ({ reason }) => reason,
        opened: ({ opened }) => opened,
        escalations: ({ escalation }) => escalation,
        approvers: ({ approvers, hasMore }) => approvers.join(', ') + (hasMore ? ', …' : ''),
      },
      nameColumns: {
        subjectName: ({ subject }) => [subject],
        requesterName: ({ requestor }) => [requestor],
        submittedByName: ({ caller }) => [caller],
        approverNames: ({ approvers, hasMore }) => [...approvers, ...(hasMore ? ['…'] : [])],
      },
    }
  })
}

async function reassign(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { host } = parts
  const { request, subject } = exchange
  const asked = await readJsonBody<ConsoleReassignment>(request, reassignSchema, maxBodyBytes)
  const changed = await host.approvals.assign({
    ...asked,
    approval: id,
    by: operatorOf(subject),
    requestId: request.id,
  })
  host.log.info('approval reassigned by an administrator', { approval: id, to: asked.to, by: subject.uid })
  return answer({
    id: changed.id,
    version: changed.version,
    approvers: changed.approvers.map(({ login }) => login),
  } satisfies ConsoleReassigned)
}
