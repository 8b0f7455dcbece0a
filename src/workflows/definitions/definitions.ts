import type { Configuration, WorkflowConfig } from '#config/configuration/configuration.ts'
import type { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Scope } from '#kernel/scope.ts'
import type { TimeSpan } from '#kernel/time.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import type { ExpiryOffer } from '#sdk/workflow/expiry-offer.ts'
import type { BoundSubject } from '#sdk/workflow/workflow.ts'
import type { PreparedTask, TaskHost, TaskOutcome, WorkflowTask, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { copyUser, sameLogin } from '#sdk/workflow/workflow-user.ts'
import { countWrites, type WriteCounts } from '#sdk/workflow/workflow-writes.ts'
import { AnotherSubject } from '#workflows/record/run-requests.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { withCalled } from './workflow-parameters.ts'

/** One task of a definition, created and ready to run. */
export interface Step {
  readonly taskType: string
  /** Which one it is, if the task type does not identify it. */
  readonly name?: string | undefined
  /** Workflows it calls. */
  readonly calls?: readonly string[]
  readonly task: WorkflowTask
  /** It, a task in its branches or a workflow that it calls may set the run's password. */
  readonly maySetPassword: boolean
}

/** A workflow, created once per configuration. Every list of tasks in its tree is identified by its place. */
export interface Definition {
  readonly name: string
  /** Runs are pinned to this. */
  readonly hash: string
  /** The requester chooses the expiry date. */
  readonly accessEnds?: ExpiryOffer | undefined
  /** The maximum duration of a run. */
  readonly deadline?: TimeSpan | undefined
  /** By place: `''` is the workflow's own list, `2/onSuccess` the list in the third task's branch, and so on. */
  readonly lists: ReadonlyMap<string, readonly Step[]>
}

/** The place of the list in a branch of the `index`-th task of the list at `place`. */
export function branchPlace(place: string, index: number, branch: 'onSuccess' | 'onFailure'): string {
  return place === '' ? `${index}/${branch}` : `${place}/${index}/${branch}`
}

const maySetPassword = ({ flow, calls, onSuccess, onFailure }: PreparedTask): boolean =>
  flow.provisions?.password === true || calls.length > 0 || [...onSuccess, ...onFailure].some(maySetPassword)

/** Creates the tasks of a workflow; they are closed with the scope. */
export async function createDefinition(config: WorkflowConfig, host: TaskHost, scope: Scope): Promise<Definition> {
  const lists = new Map<string, readonly Step[]>()
  const pending: { place: string; tasks: readonly PreparedTask[] }[] = [{ place: '', tasks: config.tasks }]
  for (let list = pending.shift(); list !== undefined; list = pending.shift()) {
    const steps: Step[] = []
    for (const [index, prepared] of list.tasks.entries()) {
      const { taskType, name, timeoutMillis, flow, calls } = prepared
      const created = scope.own(await prepared.create(host))
      const task = flow.runsCode === true || flow.setsValues === true ? withBoundSubject(created) : created
      const limited = timeoutMillis === undefined ? task : withTimeLimit(task, timeoutMillis)
      steps.push({
        taskType,
        name,
        calls,
        task: limited,
        maySetPassword: maySetPassword(prepared),
      })
      for (const branch of ['onSuccess', 'onFailure'] as const) {
        if (prepared[branch].length === 0) continue
        pending.push({ place: branchPlace(list.place, index, branch), tasks: prepared[branch] })
      }
    }
    lists.set(list.place, steps)
  }
  const { name, hash, accessEnds, deadline } = config
  return {
    name,
    hash,
    lists,
    accessEnds,
    deadline,
  }
}

/**
 * The task, failing with TARGET_TIMEOUT when one execution takes longer. Aborts calls to targets; does not wait for
 * a task that ignores the signal.
 */
export function withTimeLimit(task: WorkflowTask, millis: number): WorkflowTask {
  const { preview } = task
  return {
    ...(preview && { preview: (context) => preview.call(task, context) }),
    async run(context): Promise<TaskOutcome> {
      const limit = new AbortController()
      const late = Promise.withResolvers<never>()
      const timer = setTimeout(() => {
        const error = new GatewayError('TARGET_TIMEOUT', `the task took longer than ${millis} ms`)
        limit.abort(error)
        late.reject(error)
      }, millis)
      const forTarget = (name: string): TargetRequest => {
        const request = context.forTarget(name)
        const { signal } = request
        return { ...request, signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]) }
      }
      try {
        return await Promise.race([task.run({ ...context, forTarget }), late.promise])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/**
 * The task, refused with ACCESS_DENIED if it replaces the user of a bound run. The step ends with that, so no later
 * task calls a target or starts a run for that user.
 */
function withBoundSubject(task: WorkflowTask): WorkflowTask {
  const { preview } = task
  return {
    ...(preview && { preview: (context) => preview.call(task, context) }),
    async run(context) {
      const { bound, user } = context
      if (bound === undefined) return await task.run(context)
      const before = copyUser(user)
      const outcome = await task.run(context)
      requireSameUser(before, user, bound)
      return outcome
    },
  }
}

/** Logins may change in letter case, and login attributes may lose values or get the login. */
function requireSameUser(before: WorkflowUser, after: WorkflowUser, { attributes }: BoundSubject): void {
  if (!sameLogin(before.userID, after.userID)) {
    throw new AnotherSubject(`the task changed the login from "${before.userID}" to "${after.userID}"`, after.userID)
  }
  const names = attributes === 'any' ? after.attributes.names() : attributes
  const changed = names.find((name) => !isKept(name, before, after.attributes))
  if (changed === undefined) return
  const detail = `the task set the attribute "${changed}" of "${before.userID}", which logins are made of`
  throw new AnotherSubject(detail, after.attributes.values(changed).join(', '))
}

function isKept(name: string, { userID, attributes }: WorkflowUser, after: Attributes): boolean {
  const own = [userID, ...attributes.values(name)]
  return after.values(name).every((value) => own.some((one) => sameLogin(one, value)))
}

/** Hash by name. */
export type Pins = ReadonlyMap<string, string>

interface DefinitionParts {
  readonly configuration: Pick<Configuration, 'workflows' | 'restoreWorkflow'>
  /** Those of the configuration, created. */
  readonly created: ReadonlyMap<string, Definition>
  readonly hostFor: (name: string, at: string) => TaskHost
  readonly store: Pick<RunStore, 'definition' | 'saveDefinitions'>
}

/**
 * The longest time between two reports of use, so that definitions in use are not cleaned up; less than a day, as
 * the cleanup relies on.
 */
const usedMillis = 3600_000
/** How many definitions of earlier configurations are cached. */
const maxOld = 200

/**
 * The definitions of one configuration, and those of stored runs, which are read from the store and created with
 * the targets of this configuration when they are needed.
 */
export class Definitions {
  readonly #parts: DefinitionParts
  readonly #pins = new Map<string, Pins>()
  readonly #writes = new Map<string, WriteCounts>()
  readonly #old = new Map<string, Promise<Definition>>()
  readonly #ready = new Map<string, Definition>()
  readonly #scope = new Scope()
  /** When they were saved last. */
  readonly #saved = new Map<string, number>()

  constructor(parts: DefinitionParts) {
    this.#parts = parts
  }

  /** Throws NOT_SUPPORTED for an unknown name, and WORKFLOW_FAILED if that one was not loaded. */
  get(name: string, hash?: string): Definition {
    const present = this.#parts.created.get(name)
    if (hash === undefined) {
      if (present === undefined) throw new GatewayError('NOT_SUPPORTED', `there is no workflow "${name}"`)
      return present
    }
    const found = present?.hash === hash ? present : this.#ready.get(keyOf(name, hash))
    if (found === undefined) throw new GatewayError('WORKFLOW_FAILED', `workflow "${name}" was not loaded`)
    return found
  }

  /** What a run of the workflow is pinned to: the workflow, and all that it calls. */
  pinsOf(name: string): Pins {
    let pins = this.#pins.get(name)
    if (pins === undefined) {
      pins = new Map(withCalled(this.#parts.configuration.workflows, name).map((config) => [config.name, config.hash]))
      this.#pins.set(name, pins)
    }
    return pins
  }

  writesOf(name: string): WriteCounts {
    let counts = this.#writes.get(name)
    if (counts === undefined) {
      const { workflows } = this.#parts.configuration
      counts = countWrites((called) => workflows.get(called)?.tasks, name)
      this.#writes.set(name, counts)
    }
    return counts
  }

  /** So that a stored run can continue under any later configuration. */
  async save(pins: Pins): Promise<void> {
    const missing: { name: string; hash: string; body: string }[] = []
    for (const [name, hash] of pins) {
      const config = this.#parts.configuration.workflows.get(name)
      const saved = this.#saved.get(keyOf(name, hash)) ?? Number.NEGATIVE_INFINITY
      if (config?.hash === hash && performance.now() - saved > usedMillis)
        missing.push({ name, hash, body: config.source })
    }
    if (missing.length === 0) return
    await this.#parts.store.saveDefinitions(missing)
    for (const { name, hash } of missing) this.#saved.set(keyOf(name, hash), performance.now())
  }

  /** Makes `get` return these. Throws WORKFLOW_FAILED with the reason if one is no longer available. */
  async load(pins: Iterable<readonly [name: string, hash: string]>): Promise<void> {
    for (const [name, hash] of pins) {
      if (this.#parts.created.get(name)?.hash === hash) continue
      const key = keyOf(name, hash)
      if (this.#ready.has(key)) continue
      let loading = this.#old.get(key)
      if (loading === undefined) {
        if (this.#old.size >= maxOld)
          throw new GatewayError('TOO_MANY_REQUESTS', 'too many earlier definitions are in use')
        loading = this.#restore(name, hash)
        this.#old.set(key, loading)
        loading.catch(() => this.#old.delete(key))
      }
      this.#ready.set(key, await loading)
    }
  }

  close(): Promise<void> {
    return this.#scope.close()
  }

  async #restore(name: string, hash: string): Promise<Definition> {
    const { store, configuration, hostFor } = this.#parts
    const stored = await store.definition(hash)
    if (stored === undefined || typeof stored.body !== 'string') {
      throw new GatewayError('WORKFLOW_FAILED', `the definition of workflow "${name}" that the run began with is lost`)
    }
    const restored = configuration.restoreWorkflow({ name, hash, source: stored.body })
    if ('problems' in restored) {
      const problems = restored.problems.slice(0, 5).join('; ')
      const text = `workflow "${name}" has changed, and as the run began it cannot be had any more: ${problems}`
      throw new GatewayError('WORKFLOW_FAILED', text)
    }
    const { config } = restored
    return await createDefinition(config, hostFor(name, config.at), this.#scope)
  }
}

const keyOf = (name: string, hash: string): string => `${hash} ${name}`
