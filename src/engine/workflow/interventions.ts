import type { AuditEntry } from '#domain/audit.ts'
import type { RunQuery, RunState, RunWithData } from '#domain/run.ts'
import { ownTarget } from '#engine/approvals/approval-audit.ts'
import { pinnedDefinitions, skipTask } from '#engine/workflow/saved-run.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { NewerChange, type PinnedRun, type RunAccess, type RunIntervention } from '#sdk/workflow/runs.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'
import type { RunStore } from '#storage/runs/run-store.ts'

const changeKinds: ReadonlySet<AuditEntry['kind']> = new Set(['entry', 'attribute', 'group'])

/** Shows stored runs and lets administrators act on them; needs no configuration. Audits every action. */
export class RunInterventions implements Omit<RunAccess, 'start' | 'refuse' | 'settle' | 'takeFinished'> {
  readonly #store: RunStore
  readonly #audit: Pick<AuditStore, 'list'>
  readonly #clock: Clock

  constructor(store: RunStore, audit: Pick<AuditStore, 'list'>, clock: Clock) {
    this.#store = store
    this.#audit = audit
    this.#clock = clock
  }

  async get(id: string): Promise<(PinnedRun & RunWithData) | undefined> {
    const run = await this.#store.get(id)
    return run && { ...run, definitions: { [run.name]: run.definition, ...pinnedDefinitions(run.data) } }
  }

  list(query: RunQuery) {
    return this.#store.list(query)
  }

  ahead(id: string) {
    return this.#store.ahead(id)
  }

  parametersOf(runs: readonly string[]) {
    return this.#store.parametersOf(runs)
  }

  steps(id: string, after?: number) {
    return this.#store.steps(id, after)
  }

  async retry(intervention: RunIntervention): Promise<void> {
    const { id, fence } = intervention
    const run = await this.#find(id)
    await this.#requireLatest(run)
    await this.#store.resume({ id, fence, effects: { audit: [this.#row(run, intervention, 'retry')] } })
  }

  async skip(intervention: RunIntervention): Promise<void> {
    const { id, fence } = intervention
    const run = await this.#find(id)
    if (run.state !== 'incident') throw new GatewayError('CONFLICT', `the run ${id} is ${run.state}`)
    await this.#requireLatest(run)
    const data = skipTask(run.data)
    if (data === undefined) throw new GatewayError('CONFLICT', `the run ${id} has no task left to skip`)
    await this.#store.resume({ id, fence, effects: { audit: [this.#row(run, intervention, 'skip')] } }, data)
  }

  async cancel(intervention: RunIntervention & { readonly onlyUntouched?: boolean }): Promise<RunState> {
    const { id, fence, by, reason, onlyUntouched = false } = intervention
    const run = await this.#find(id)
    return await this.#store.cancel({
      id,
      fence,
      onlyUntouched,
      outcome: 'cancelled',
      cancellation: { by, ...(reason === undefined ? {} : { reason }) },
      effects: { audit: [this.#row(run, intervention, 'cancel')] },
    })
  }

  /** The rest of a run that failed part way must not undo what was changed since. Throws NewerChange. */
  async #requireLatest({ id, state, touched, subject, updated }: RunWithData): Promise<void> {
    if (state !== 'incident' || !touched) return
    const { rows } = await this.#audit.list({ subject, from: updated, limit: 500 })
    const newer = rows.find(
      ({ target, kind, workflow }) => workflow.id !== id && target !== ownTarget && changeKinds.has(kind),
    )
    if (newer !== undefined) throw new NewerChange(id, newer)
  }

  async #find(id: string): Promise<RunWithData> {
    const run = await this.#store.get(id)
    if (run === undefined) throw new GatewayError('NOT_FOUND', `no run ${id}`)
    return run
  }

  #row(run: RunWithData, { by, reason }: RunIntervention, act: 'retry' | 'skip' | 'cancel'): AuditEntry {
    return {
      id: newId(),
      time: this.#clock(),
      requestor: by,
      subject: run.subject,
      workflow: { id: run.id, name: run.name },
      target: 'gatehouse',
      kind: 'entry',
      action: act === 'cancel' ? 'delete' : 'replace',
      attribute: 'workflow',
      value: act === 'retry' || run.incident === undefined ? act : `${act} ${run.incident.task}`,
      ...(reason === undefined ? {} : { reason }),
    }
  }
}
