import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { GroupOrigin, OwnAccess } from '#sdk/workflow/grants.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { removalCall } from './grant-revoker.ts'
import { removalWorkflow } from './removal-workflow.ts'

interface OwnAccessParts {
  readonly grants: GrantStore
  readonly runs: Pick<RunService, 'prepare'>
  readonly store: Pick<RunStore, 'record'>
  readonly audit: Pick<AuditStore, 'list'>
  readonly clock: Clock
}

export function createOwnAccess({ grants, runs, store, audit, clock }: OwnAccessParts): OwnAccess {
  return {
    ofSubject: (login) => grants.ofSubject(login),
    extend: (id, expires) => grants.extend(id, expires),
    get: (id) => grants.get(id),
    endedOf: (login) => grants.endedOf(login),
    groupOrigins: (login) => groupOrigins(login, audit),
    async giveBack(grant, { login, identity, requestId }) {
      const { id, target, kind, name, expires } = grant
      const run = await runs.prepare({
        ...removalCall(grant),
        head: {
          workflow: removalWorkflow,
          requester: login,
          who: { requester: identity, subject: identity },
          requestId,
          reason: `given back before ${expires.toISOString()}`,
        },
      })
      const entry = {
        id: newId(),
        time: clock(),
        requestor: login,
        subject: grant.subject,
        workflow: { id: run.head.id, name: removalWorkflow },
        target: ownTarget,
        kind: 'entry',
        action: 'delete',
        attribute: 'grant',
        value: `${kind} ${name} of ${target}, given back`,
        requestId,
      } as const
      await store.record({
        revokes: [{ grant: id, onlyDue: false, removal: run.head.id }],
        starts: [run],
        audit: [entry],
      })
      return run.head.id
    },
  }
}

/** Audit entries per page, and how many pages are read, so that the cost does not grow with the audit. */
const [pageSize, maxPages] = [500, 2]

async function groupOrigins(
  subject: string,
  audit: Pick<AuditStore, 'list'>,
): Promise<ReadonlyMap<string, GroupOrigin>> {
  const latest = new Map<string, GroupOrigin | undefined>()
  let after: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const { rows, next } = await audit.list({ subject, limit: pageSize, ...(after === undefined ? {} : { after }) })
    for (const { kind, attribute, action, value, time, workflow } of rows) {
      if (kind !== 'group' || attribute !== 'groups' || value === undefined) continue
      const group = value.toLowerCase()
      if (!latest.has(group)) latest.set(group, action === 'add' ? { since: time, run: workflow.id } : undefined)
    }
    if (next === undefined) break
    after = next
  }
  return new Map([...latest].flatMap(([group, origin]) => (origin === undefined ? [] : [[group, origin]])))
}
