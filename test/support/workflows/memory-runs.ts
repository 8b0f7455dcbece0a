import { isUser, loginIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { CallKey, RunStart, WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { Public } from '#testing/workflows/call-store.ts'
import { hasEnded, type Run, type RunQuery, type RunState } from '#workflows/record/run.ts'
import type {
  PinnedRun,
  RefusedCall,
  RunIntervention,
  RunRetry,
  RunWithdrawal,
  SettledChanges,
} from '#workflows/record/run-requests.ts'
import type { RunService } from '#workflows/runs/run-service.ts'

interface Answered {
  readonly bodyHash: string
  readonly run: string
  result?: WorkflowResult
}

/** A run with a part of its head. */
type GivenRun = Partial<Omit<Run, 'head'>> & { readonly head?: Partial<RunHead> }

/** Runs that are started and do nothing. A test sets their outcome. */
export class MemoryRuns implements Partial<Public<RunService>> {
  readonly calls: WorkflowCall[] = []
  readonly refused: RefusedCall[] = []
  readonly runs = new Map<string, Run>()
  /** By run; a test sets them. */
  readonly parameters = new Map<string, ReadonlyMap<string, string>>()
  readonly interventions: (RunWithdrawal & { readonly action: string; readonly onlyUntouched?: boolean })[] = []
  /** The effect of a started run before its answer; may throw. */
  execute: (call: WorkflowCall) => Promise<WorkflowResult['status']> = async ({ asynchronous }) =>
    asynchronous === true ? 'accepted' : 'completed'
  /** What a call without a key does; a test sets it. */
  run: (call: WorkflowCall) => Promise<WorkflowResult> = async () => {
    throw new Error('no workflows in this test')
  }
  readonly #answered = new Map<string, Answered>()

  async start(call: WorkflowCall, key?: CallKey): Promise<RunStart> {
    const place = key === undefined ? undefined : `${key.scope} ${key.key}`
    const before = place === undefined ? undefined : this.#answered.get(place)
    if (before !== undefined) {
      if (before.bodyHash !== key?.bodyHash) return { kind: 'other-body' }
      if (before.result === undefined) return { kind: 'under-way', run: before.run }
      return { kind: 'repeated', result: before.result }
    }
    const id = newId()
    const answered: Answered = { bodyHash: key?.bodyHash ?? '', run: id }
    if (place !== undefined) this.#answered.set(place, answered)
    this.calls.push(call)
    try {
      const status = await this.execute(call)
      answered.result = { id, status, changes: 1 }
      if (status !== 'completed') this.add({ head: { id, workflow: call.head.workflow, ...whose(call) } })
      this.parameters.set(id, new Map(Object.entries(call.params)))
      return { kind: 'started', result: answered.result }
    } catch (error) {
      if (place !== undefined) this.#answered.delete(place)
      throw error
    }
  }

  async wasCalled({ scope, key }: CallKey): Promise<boolean> {
    return this.#answered.has(`${scope} ${key}`)
  }

  async settle(): Promise<SettledChanges> {
    return { finished: [], refused: [] }
  }

  async hasUnfinished(): Promise<boolean> {
    return false
  }

  async takeFinished(): Promise<boolean> {
    return false
  }

  async refuse(call: RefusedCall): Promise<void> {
    this.refused.push(call)
  }

  add({ head, ...run }: GivenRun = {}): Run {
    const now = new Date('2030-01-02T00:00:00Z')
    const named = { subject: 'jjackson', requester: 'caller', ...head }
    const { subject, requester, caller } = named
    const who = {
      subject: loginIdentity(subject),
      requester: loginIdentity(requester),
      caller: caller === undefined ? undefined : loginIdentity(caller),
    }
    const whole: Run = {
      head: { id: newId(), workflow: 'w', definition: 'hash', who, ...named },
      state: 'ready',
      attempt: 0,
      fence: 1,
      due: now,
      touched: false,
      created: now,
      updated: now,
      ...run,
    }
    this.runs.set(whole.head.id, whole)
    return whole
  }

  async parametersOf(runs: readonly string[]): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
    return new Map([...this.parameters].filter(([id]) => runs.includes(id)))
  }

  async several(ids: readonly string[]): Promise<readonly Run[]> {
    return [...this.runs.values()].filter(({ head }) => ids.includes(head.id))
  }

  async get(id: string): Promise<PinnedRun | undefined> {
    const run = this.runs.get(id)
    return run && { ...run, definitions: { [run.head.workflow]: run.head.definition } }
  }

  /** The earliest other run of the subject that has not ended, if this one is ready. */
  async ahead(id: string): Promise<Run | undefined> {
    const run = this.runs.get(id)
    if (run?.state !== 'ready') return undefined
    const others = [...this.runs.values()].filter(
      ({ head: { subject }, state }) => subject === run.head.subject && !hasEnded(state),
    )
    return others[0] === run ? undefined : others[0]
  }

  async list(query: RunQuery) {
    const { states, name, subject, requester, requestedBy, about, from, until, target, unfinished, limit } = query
    const all = [...this.runs.values()].reverse()
    const found = all.filter(
      (run) =>
        (states?.includes(run.state) ?? true) &&
        (name ?? run.head.workflow) === run.head.workflow &&
        (subject ?? run.head.subject) === run.head.subject &&
        (requester ?? run.head.requester) === run.head.requester &&
        (requestedBy === undefined || isUser(run.head.who.requester, requestedBy)) &&
        (about === undefined || isUser(run.head.who.subject, about)) &&
        (from === undefined || run.created >= from) &&
        (until === undefined || run.created < until) &&
        (target === undefined || run.incident?.target === target) &&
        (unfinished === undefined || unfinished === (run.touched && run.state === 'incident')),
    )
    return { runs: found.slice(0, limit), ...(found.length > limit ? { next: 'more' } : {}) }
  }

  async steps(_id: string, after = 0) {
    const time = new Date('2030-01-02T00:00:01Z')
    const step = { number: 1, attempt: 1, task: 'w:0', taskType: 'provision', started: time, ended: time }
    return [
      { ...step, id: 1, outcome: 'failed', error: 'connect ECONNREFUSED 10.0.0.7' },
      { ...step, id: 2, attempt: 2, outcome: 'next' },
    ].filter(({ id }) => id > after)
  }

  async retry(intervention: RunRetry): Promise<void> {
    this.#intervene('retry', intervention, 'ready')
  }

  async skip(intervention: RunIntervention): Promise<void> {
    this.#intervene('skip', intervention, 'ready')
  }

  async cancel(intervention: RunIntervention): Promise<RunState> {
    return this.#intervene('cancel', intervention, 'cancelled')
  }

  async withdraw(withdrawal: RunWithdrawal): Promise<RunState> {
    if (this.runs.get(withdrawal.id)?.touched === true) throw new GatewayError('CONFLICT', 'a target was changed')
    return this.#intervene('cancel', { ...withdrawal, onlyUntouched: true }, 'cancelled')
  }

  #intervene(
    action: string,
    intervention: (RunRetry | RunWithdrawal) & { readonly onlyUntouched?: boolean },
    state: RunState,
  ): RunState {
    const run = this.runs.get(intervention.id)
    if (run === undefined) throw new GatewayError('NOT_FOUND', intervention.id)
    if (run.fence !== intervention.fence) throw new GatewayError('VERSION_MISMATCH', intervention.id)
    const { by } = intervention
    this.interventions.push({ ...intervention, by: typeof by === 'string' ? by : by.login, action })
    this.runs.set(run.head.id, { ...run, state, fence: run.fence + 1 })
    return state
  }
}

const whose = ({ user, head: { requester, caller, reason } }: WorkflowCall) => ({
  subject: user.userID,
  requester,
  caller,
  reason,
})
