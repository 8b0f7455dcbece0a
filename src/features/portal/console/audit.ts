import type { AuditVerification } from '#audit/audit-reader.ts'
import {
  type AuditEntryView,
  type AuditVerificationView,
  auditEntry,
  auditVerification,
} from '#features/portal/contract/console-audit.ts'
import { loginOf, type MainParts } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery, readTime } from '#features/portal/runs/list-answer.ts'
import { isSecretName, withoutTokens } from '#kernel/text/redaction.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer } from '#sdk/api/json-answer.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { AuditEntry, AuditQuery } from '#sdk/audit/audit-entry.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

const maxText = 1000

export const auditOperations = {
  listAudit: {
    summary: 'Entries of the audit, latest first',
    query: {
      requestor: 'A login',
      subject: 'A login, or the name of a workload',
      workflow: 'The id of a run',
      target: 'A target, application or endpoint',
      requestId: 'The id of a request, as in the access log',
      from: 'From this time on: such as 1h, or ISO 8601',
      until: 'Before this time',
      ...listQuery,
    },
    answer: 'AuditPage',
    handle: listAudit,
  },
  getAuditVerification: {
    summary: 'The latest verification of the audit that this replica started',
    answer: 'AuditVerification',
    handle: showVerification,
  },
  verifyAudit: {
    summary: 'Starts to verify the whole audit in the background, and records the outcome in the audit',
    answers: { '202': { description: 'It runs', schema: 'AuditVerification' } },
    failures: { '409': 'This replica verifies the audit already' },
    handle: startVerification,
  },
} satisfies OperationTable<MainParts>

/** Entries that match the query. */
async function listAudit({ host, names }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const filters = ['requestor', 'subject', 'workflow', 'target', 'requestId', 'from', 'until'] as const
  return await answerList(exchange, filters, (given) => {
    const now = host.clock()
    const text = ([value]: readonly string[]): string | undefined => (value === '' ? undefined : value)
    const conditions = {
      requestor: text(given.requestor),
      subject: text(given.subject),
      workflowId: text(given.workflow),
      target: text(given.target),
      requestId: text(given.requestId),
      from: readTime('from', given.from, now),
      until: readTime('until', given.until, now),
    }
    const query = Object.fromEntries(
      Object.entries(conditions).filter(([, value]) => value !== undefined),
    ) as Partial<AuditQuery>
    return {
      name: 'audit',
      names,
      read: async (page) => {
        const { rows, next } = await host.audit.list({ ...query, ...page })
        const logins = rows.flatMap(({ requestor, caller, subject }) => [requestor, caller ?? '', subject])
        return { rows: rows.map(shownEntry), next, users: logins.map((login) => ({ login })) }
      },
      columns: auditColumns,
      nameColumns: {
        requestorName: ({ requestor }) => [requestor],
        callerName: ({ caller }) => [caller],
        subjectName: ({ subject }) => [subject],
      },
    }
  })
}

const auditColumns: Readonly<Record<string, (row: AuditEntryView) => string | undefined>> = {
  time: ({ time }) => time,
  requestor: ({ requestor }) => requestor,
  caller: ({ caller }) => caller,
  subject: ({ subject }) => subject,
  workflow: ({ workflow }) => workflow.name,
  run: ({ workflow }) => workflow.id,
  target: ({ target }) => target,
  kind: ({ kind }) => kind,
  action: ({ action }) => action,
  attribute: ({ attribute }) => attribute,
  value: ({ value }) => value,
  approval: ({ approval }) => approval,
  reason: ({ reason }) => reason,
  requestId: ({ requestId }) => requestId,
  id: ({ id }) => id,
}

/** An entry without secrets, with texts of bounded length. */
export const shownEntry = (entry: AuditEntry): AuditEntryView =>
  wireForm(auditEntry, {
    ...entry,
    value: isSecretName(entry.attribute) ? undefined : shownText(entry.value),
    reason: shownText(entry.reason),
  })

function shownText(text: string | undefined): string | undefined {
  const shown = text && withoutTokens(text)
  return shown !== undefined && shown.length > maxText ? `${shown.slice(0, maxText)}…` : shown
}

async function showVerification(parts: MainParts): Promise<GatewayResponse> {
  return answer(await shownVerification(parts.host.audit.verification(), parts))
}

async function startVerification(parts: MainParts, { subject }: Exchange): Promise<GatewayResponse> {
  const started = await parts.host.audit.startVerification(loginOf(parts, subject))
  return answer(await shownVerification(started, parts), 202)
}

async function shownVerification(
  verification: AuditVerification | undefined,
  { names }: MainParts,
): Promise<AuditVerificationView> {
  if (verification === undefined) return { state: 'none' }
  return wireForm(auditVerification, { ...verification, names: await names([{ login: verification.by }]) })
}
