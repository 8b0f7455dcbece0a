import { AuditTrail } from '#engine/provisioning/audit-trail.ts'
import { createTargetMappings, withMappings } from '#engine/provisioning/target-mappings.ts'
import { createDefinition, type Definition } from '#engine/workflow/definition.ts'
import { createRequestMap } from '#engine/workflow/request-map.ts'
import type { RunState } from '#engine/workflow/run-state.ts'
import { stepContext } from '#engine/workflow/step-context.ts'
import type { SubjectQueue } from '#engine/workflow/subject-queue.ts'
import { positionText, rootFrame, walk } from '#engine/workflow/walk.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { buildScoped, type Closable, type Scope } from '#kernel/scope.ts'
import type { Configuration } from '#sdk/configuration.ts'
import type { ModuleHost, WorkflowStarter } from '#sdk/host.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow-task.ts'
import type { AuditStore } from '#storage/audit-store.ts'

/** How long closing waits for runs that are under way. */
const drainMillis = 30_000

export interface WorkflowServices {
  readonly log: Logger
  readonly clock: Clock
  readonly audit: Pick<AuditStore, 'append' | 'appendWithin'>
  /** Shared by all configurations of the process, so that order per subject survives a reload. */
  readonly subjects: SubjectQueue
}

/** Creates the tasks of every workflow of a configuration, once; when one cannot be created, the others are closed. */
export async function createWorkflows(
  configuration: Pick<Configuration, 'workflows' | 'targets'>,
  hostFor: (name: string, at: string) => ModuleHost,
  services: WorkflowServices,
): Promise<WorkflowStarter & Closable> {
  const { value: definitions, scope } = await buildScoped(async (scope) => {
    const mappings = await createTargetMappings(configuration.targets, hostFor, scope)
    const created = new Map<string, Definition>()
    for (const [name, config] of configuration.workflows) {
      created.set(name, await createDefinition(config, withMappings(hostFor(name, config.at), mappings), scope))
    }
    return created
  })
  return new Workflows(definitions, services, scope)
}

class Workflows implements WorkflowStarter, Closable {
  readonly #definitions: ReadonlyMap<string, Definition>
  readonly #services: WorkflowServices
  readonly #scope: Scope
  #active = 0
  #closing = false
  #drained: (() => void) | undefined

  constructor(definitions: ReadonlyMap<string, Definition>, services: WorkflowServices, scope: Scope) {
    this.#definitions = definitions
    this.#services = services
    this.#scope = scope
  }

  async run(call: WorkflowCall): Promise<WorkflowResult> {
    if (this.#closing) throw new GatewayError('SHUTTING_DOWN', `workflow "${call.name}" came too late`)
    const state = this.#start(call)
    this.#active++
    try {
      return await this.#services.subjects.run(call.subject ?? call.user.userID, () => this.#execute(state, call))
    } finally {
      this.#active--
      if (this.#active === 0) this.#drained?.()
    }
  }

  /** Waits for the runs under way, then closes the tasks. */
  async close(): Promise<void> {
    this.#closing = true
    if (this.#active > 0) await this.#drain()
    await this.#scope.close()
  }

  #drain(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#services.log.warn('workflows still run while their configuration ends', { runs: this.#active })
        resolve()
      }, drainMillis)
      this.#drained = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #start(call: WorkflowCall): RunState {
    if (call.user.userID === '')
      throw new GatewayError('BAD_REQUEST', 'a workflow was called for a user without a login')
    if (call.newUserID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for an empty new login')
    const id = newId()
    const request = createRequestMap(call.params)
    request.set('WORKFLOW_ID', id)
    return {
      id,
      workflow: call.name,
      requestor: call.requestor,
      user: workflowUser(call),
      request,
      frames: [rootFrame(this.#definition(call.name))],
      steps: 0,
    }
  }

  async #execute(state: RunState, call: WorkflowCall): Promise<WorkflowResult> {
    const { log, clock, audit } = this.#services
    const run = {
      workflow: { id: state.id, name: state.workflow },
      requestor: state.requestor,
      ...(call.requestId === undefined ? {} : { requestId: call.requestId }),
    }
    const trail = new AuditTrail(run, audit)
    const services = { log, clock, trail }
    let failure: GatewayError | undefined
    try {
      await walk(
        state,
        (name, hash) => this.#definition(name, hash),
        (current, position) => stepContext(current, position, services),
      )
    } catch (error) {
      failure = this.#failed(state, error)
    }
    if (trail.rows.length > 0) {
      try {
        await audit.append(trail.rows)
      } catch (error) {
        failure = this.#unaudited(state, error, failure)
      }
    }
    if (failure !== undefined) throw failure
    return { id: state.id, changes: trail.count }
  }

  #definition(name: string, hash?: string): Definition {
    const definition = this.#definitions.get(name)
    if (definition === undefined) throw new GatewayError('NOT_SUPPORTED', `there is no workflow "${name}"`)
    if (hash !== undefined && hash !== definition.hash) {
      throw new GatewayError('WORKFLOW_FAILED', `workflow "${name}" is not the one that the run was started with`)
    }
    return definition
  }

  /** A target's own error keeps its status; anything else is WORKFLOW_FAILED with the original as its cause. */
  #failed(state: RunState, error: unknown): GatewayError {
    const frame = state.frames.at(-1)
    const task = frame === undefined ? 'end' : positionText({ frame, index: frame.next })
    const failure =
      error instanceof GatewayError
        ? error
        : new GatewayError('WORKFLOW_FAILED', `workflow "${state.workflow}", task ${task}: ${messageOf(error)}`, {
            cause: error,
          })
    const fields = { workflowId: state.id, workflow: state.workflow, task, code: failure.code }
    if (failure.isRefusal) this.#services.log.info('workflow refused', { ...fields, reason: failure.message })
    else this.#services.log.error('workflow failed', { ...fields, err: failure })
    return failure
  }

  #unaudited(state: RunState, error: unknown, failure: GatewayError | undefined): GatewayError {
    this.#services.log.error('audit could not be written', {
      workflowId: state.id,
      workflow: state.workflow,
      err: error,
    })
    // Asking again is safe, since provisioning writes only what differs; when to, the store's own error says.
    const unreachable = error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE' ? error : undefined
    const text = `the audit of workflow "${state.workflow}" could not be written`
    return new GatewayError(unreachable?.code ?? 'WORKFLOW_FAILED', text, {
      cause: failure === undefined ? error : new AggregateError([failure, error]),
      ...(unreachable?.retryAfter === undefined ? {} : { retryAfter: unreachable.retryAfter }),
    })
  }
}

function workflowUser(call: WorkflowCall): WorkflowUser {
  const { user, reason, password, newUserID, basedOn } = call
  return {
    userID: user.userID,
    attributes: Attributes.from(user.attributes),
    groups: [...user.groups],
    keepGroups: call.keepGroups ?? false,
    ...(user.id === undefined ? {} : { id: user.id }),
    ...(call.cleared === undefined ? {} : { cleared: call.cleared }),
    ...(newUserID === undefined ? {} : { newUserID }),
    ...(basedOn === undefined ? {} : { basedOn: new Map([[basedOn.target, basedOn]]) }),
    ...(reason === undefined ? {} : { requestReason: reason }),
    ...(password === undefined ? {} : { password }),
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
