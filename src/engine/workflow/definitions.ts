import { createDefinition, type Definition } from '#engine/workflow/definition.ts'
import { GatewayError } from '#kernel/errors.ts'
import { Scope } from '#kernel/scope.ts'
import type { Configuration, WorkflowConfig } from '#sdk/module/configuration.ts'
import type { PreparedTask, TaskHost } from '#sdk/workflow/workflow-task.ts'
import type { RunStore } from '#storage/runs/run-store.ts'

/** Hash by name. */
export type Pins = ReadonlyMap<string, string>

export interface DefinitionParts {
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
      pins = closure(name, this.#parts.configuration.workflows)
      this.#pins.set(name, pins)
    }
    return pins
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

function closure(name: string, workflows: ReadonlyMap<string, WorkflowConfig>): Pins {
  const pins = new Map<string, string>()
  const pending = [name]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const config: WorkflowConfig | undefined = workflows.get(next)
    if (config === undefined || pins.has(next)) continue
    pins.set(next, config.hash)
    pending.push(...callsOf(config.tasks))
  }
  return pins
}

const callsOf = (tasks: readonly PreparedTask[]): string[] =>
  tasks.flatMap(({ calls, onSuccess, onFailure }) => [...calls, ...callsOf(onSuccess), ...callsOf(onFailure)])

const keyOf = (name: string, hash: string): string => `${hash} ${name}`
