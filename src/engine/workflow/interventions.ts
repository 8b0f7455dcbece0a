import type { AuditEntry } from '#domain/audit.ts'
import type { RunQuery, RunState, RunWithData } from '#domain/run.ts'
import { pinnedDefinitions, skipTask } from '#engine/workflow/saved-run.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { PinnedRun, RunAccess, RunIntervention } from '#sdk/workflow/runs.ts'
import type { RunStore } from '#storage/runs/run-store.ts'

/** Shows stored runs and lets administrators act on them; needs no configuration. Audits every action. */
export class RunInterventions implements Omit<RunAccess, 'start' | 'refuse' | 'settle' | 'takeFinished'> {
  readonly #store: RunStore
  readonly #clock: Clock

  constructor(store: RunStore, clock: Clock) {
    this.#store = store
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
    await this.#store.resume({ id, fence, effects: { audit: [this.#row(run, intervention, 'retry')] } })
  }

  async skip(intervention: RunIntervention): Promise<void> {
    const { id, fence } = intervention
    const run = await this.#find(id)
    if (run.state !== 'incident') throw new GatewayError('CONFLICT', `the run ${id} is ${run.state}`)
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
