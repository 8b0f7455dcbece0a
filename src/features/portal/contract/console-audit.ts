import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { personNames } from './person-names.ts'

/** A change to a target, or a decision about a token, a login or an approval. */
export const auditEntry = z.object({
  id: z.string(),
  time: z.string(),
  requestor: z.string().describe('The login of the requester; empty if unknown.'),
  caller: z.string().describe('The authenticated caller, if that is not the requester.').optional(),
  subject: z.string().describe('The login of the user, or the name of the workload.'),
  workflow: z.object({ id: z.string().describe('The run.'), name: z.string() }),
  target: z.string().describe('The target, application or endpoint.'),
  kind: z.enum(['entry', 'attribute', 'group', 'token', 'session', 'key', 'pod', 'audit']),
  action: z.enum(['add', 'replace', 'delete', 'issue', 'refuse']),
  attribute: z.string(),
  value: z.string().describe('Cut after 1,000 characters. Absent for secrets.').optional(),
  requestId: z.string().optional(),
  approval: z.string().optional(),
  reason: z.string().describe('Cut after 1,000 characters.').optional(),
})
export type AuditEntryView = Wire<typeof auditEntry>

/** GET admin/audit?requestor=&subject=&workflow=&target=&requestId=&from=&until=&limit=&after=&format=. */
export const auditPage = z.object({
  audit: z.array(auditEntry).describe('Latest first.'),
  next: z.string().optional(),
  names: personNames
    .describe('Display names by login, of the users who have these logins now. Entries have no identities.')
    .optional(),
})
export type AuditPageView = Wire<typeof auditPage>

const place = z.object({ chain: z.int(), number: z.int() })

export const auditProblem = z.object({
  kind: z.enum([
    'changed',
    'removed',
    'inserted',
    'forged',
    'broken',
    'unsealed',
    'no key',
    'older',
    'differs',
    'resealed',
    'invalid',
  ]),
  chain: z.int().optional(),
  number: z.int().optional(),
  id: z.string().optional(),
})
export type AuditProblemView = Wire<typeof auditProblem>

/** GET admin/audit/verification, and the answer of POST. */
export const auditVerification = z.object({
  state: z
    .enum(['none', 'running', 'ended', 'failed'])
    .describe('Of the latest verification that this replica started. `failed` did not reach the last record.'),
  replica: z.string().optional(),
  by: z.string().optional(),
  started: z.string().optional(),
  ended: z.string().optional(),
  checked: z.int().describe('Records so far.').optional(),
  total: z.int().describe('Records at the start.').optional(),
  recorded: z.boolean().describe('Whether the audit has an entry about the outcome.').optional(),
  report: z
    .object({
      authenticated: z.boolean().describe('Whether every chain has a valid seal.'),
      since: z.string().describe('Nothing is proven about earlier times.').optional(),
      sealed: z
        .array(place.extend({ at: z.string() }))
        .describe('Records up to `number` existed when their chain was sealed: only what happened since is proven.'),
      pruned: z.array(place).describe('Records up to `number` were pruned, and not verified.'),
      problems: z.array(auditProblem).describe('The first 100.'),
    })
    .describe('Present if it ended. Copies outside the database were not compared.')
    .optional(),
  names: personNames.optional(),
})
export type AuditVerificationView = Wire<typeof auditVerification>
