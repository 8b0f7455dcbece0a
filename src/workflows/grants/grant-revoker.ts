import { Attributes } from '#identity/attributes.ts'
import { ownIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { removalParameters, removalWorkflow } from './removal-workflow.ts'

interface RevokerParts {
  readonly grants: GrantStore
  readonly store: RunStore
  readonly runs: Pick<RunService, 'prepare'>
  readonly log: Logger
}

const batch = 100

/**
 * Ends due grants, earliest first, and starts a run for each that removes the access. One transaction, so that each
 * is removed once, even if other processes do the same. Keeps a grant that was extended meanwhile. Returns how
 * many.
 */
export async function revokeDue(parts: RevokerParts, signal?: AbortSignal): Promise<number> {
  let revoked = 0
  for (;;) {
    const due = await parts.grants.due(batch)
    let ended = 0
    for (const grant of due) {
      if (signal?.aborted === true) return revoked
      if (await revoke(grant, parts)) ended++
    }
    revoked += ended
    // If none of them could be ended, later ones wait for the next time.
    if (due.length < batch || ended === 0) return revoked
  }
}

async function revoke(grant: Grant, { store, runs, log }: RevokerParts): Promise<boolean> {
  try {
    const run = await runs.prepare(removalCall(grant))
    await store.record({ revokes: [{ grant: grant.id, onlyDue: true, removal: run.head.id }], starts: [run] })
    log.info('access has expired', { grant: grant.id, target: grant.target, kind: grant.kind, workflowId: run.head.id })
    return true
  } catch (err) {
    if (err instanceof GatewayError && err.code === 'CONFLICT') return false
    log.error('expired access could not be taken back', { grant: grant.id, target: grant.target, err })
    return false
  }
}

/** The run that removes the access of a revoked grant. */
export const removalCall = ({ target, subject, kind, name }: Grant): WorkflowCall => ({
  head: {
    workflow: removalWorkflow,
    requester: ownTarget,
    who: { requester: ownIdentity('grants') },
    reason: 'The access expired.',
  },
  user: { userID: subject, attributes: new Attributes(), groups: [] },
  keepGroups: true,
  asynchronous: true,
  params: {
    [removalParameters.target]: target,
    [removalParameters.kind]: kind,
    [removalParameters.name]: name,
  },
})

interface GrantLoopOptions {
  /** Revokes due grants; returns how many. */
  revokeDue(signal: AbortSignal): Promise<number>
  readonly log: Logger
  readonly everyMillis?: number
}

/** Looks for expired access, at start and every few seconds. */
export class GrantLoop implements Closable {
  readonly #options: Required<GrantLoopOptions>
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined

  constructor({ revokeDue, log, everyMillis = 5_000 }: GrantLoopOptions) {
    this.#options = { revokeDue, log, everyMillis }
  }

  start(): void {
    if (this.#stop.signal.aborted || this.#timer !== undefined) return
    this.#timer = setTimeout(() => this.#tick(), 0)
  }

  /** Waits for a revocation that is running. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#round
  }

  #tick(): void {
    const { revokeDue, log, everyMillis } = this.#options
    this.#round = revokeDue(this.#stop.signal).then(
      () => {},
      (err: unknown) => log.warn('expired access could not be looked for', { err }),
    )
    void this.#round.then(() => {
      if (!this.#stop.signal.aborted) this.#timer = setTimeout(() => this.#tick(), everyMillis)
    })
  }
}
