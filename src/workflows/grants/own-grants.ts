import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { When } from '#kernel/time.ts'
import type { AccessNow, Grant } from '#sdk/workflow/grant.ts'
import type { GrantAccess } from '#sdk/workflow/grants.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { removalCall } from './grant-revoker.ts'
import { removalWorkflow } from './removal-workflow.ts'

interface OwnGrantsParts {
  readonly grants: GrantStore
  readonly runs: Pick<RunService, 'prepare'>
  readonly store: Pick<RunStore, 'record'>
  readonly audit: Pick<AuditStore, 'list'>
  readonly clock: Clock
}

/** How a user got into a group. */
interface GroupOrigin {
  readonly since: Date
  /** The run that added the user. */
  readonly run: string
}

/** The user who gives access back. */
interface GiveBackCaller {
  readonly login: string
  readonly identity: Identity
  readonly requestId: string
}

/** What users see and do about their own access. The caller has checked that the access is the user's. */
export class OwnGrants implements GrantAccess {
  readonly #parts: OwnGrantsParts

  constructor(parts: OwnGrantsParts) {
    this.#parts = parts
  }

  ofSubject(login: string): Promise<readonly Grant[]> {
    return this.#parts.grants.ofSubject(login)
  }

  through(workflow: string, login: string): Promise<readonly Grant[]> {
    return this.#parts.grants.through(workflow, login)
  }

  extend(id: string, expires: When, run: string): Promise<Grant | undefined> {
    return this.#parts.grants.extend(id, expires, run)
  }

  ofRuns(runs: readonly string[]): Promise<ReadonlyMap<string, AccessNow>> {
    return this.#parts.grants.ofRuns(runs)
  }

  get(id: string): Promise<Grant | undefined> {
    return this.#parts.grants.get(id)
  }

  /** The revoked grants of a user, the latest grant first, at most 100. */
  endedOf(login: string): Promise<readonly Grant[]> {
    return this.#parts.grants.endedOf(login)
  }

  /**
   * How the user got into groups, by name in lower case, as far as the latest audit entries say. A group that the user
   * left after that is not in it.
   */
  groupOrigins(login: string): Promise<ReadonlyMap<string, GroupOrigin>> {
    return groupOrigins(login, this.#parts.audit)
  }

  /**
   * Revokes the grant before its expiry and starts the run that removes the access, with an audit entry. Returns the
   * id of the run. Throws CONFLICT if the grant is no longer active.
   */
  async giveBack(grant: Grant, { login, identity, requestId }: GiveBackCaller): Promise<string> {
    const { runs, store, clock } = this.#parts
    const { id, target, kind, name } = grant
    const run = await runs.prepare({
      ...removalCall(grant),
      head: {
        workflow: removalWorkflow,
        requester: login,
        who: { requester: identity, subject: identity },
        requestId,
        reason: 'The access was given back.',
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
