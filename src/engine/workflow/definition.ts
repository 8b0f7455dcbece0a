import type { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Scope } from '#kernel/scope.ts'
import type { TimeSpan } from '#kernel/time.ts'
import type { WorkflowConfig } from '#sdk/module/configuration.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import type { AccessEndOffer } from '#sdk/workflow/access-end.ts'
import { AnotherSubject } from '#sdk/workflow/runs.ts'
import type { BoundSubject } from '#sdk/workflow/workflow.ts'
import type { PreparedTask, TaskHost, TaskOutcome, WorkflowTask, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { copyUser, sameLogin } from '#sdk/workflow/workflow-user.ts'

/** One task of a definition, created and ready to run. */
export interface Step {
  readonly taskType: string
  /** Which one it is, if the task type does not identify it. */
  readonly name?: string
  readonly task: WorkflowTask
}

/** A workflow, created once per configuration. Every list of tasks in its tree is identified by its place. */
export interface Definition {
  readonly name: string
  /** Runs are pinned to this. */
  readonly hash: string
  /** The requester chooses the expiry date. */
  readonly accessEnds?: AccessEndOffer
  /** The maximum duration of a run. */
  readonly deadline?: TimeSpan
  /** By place: `''` is the workflow's own list, `2/onSuccess` the list in the third task's branch, and so on. */
  readonly lists: ReadonlyMap<string, readonly Step[]>
}

/** The place of the list in a branch of the `index`-th task of the list at `place`. */
export function branchPlace(place: string, index: number, branch: 'onSuccess' | 'onFailure'): string {
  return place === '' ? `${index}/${branch}` : `${place}/${index}/${branch}`
}

/** Creates the tasks of a workflow; they are closed with the scope. */
export async function createDefinition(config: WorkflowConfig, host: TaskHost, scope: Scope): Promise<Definition> {
  const lists = new Map<string, readonly Step[]>()
  const pending: { place: string; tasks: readonly PreparedTask[] }[] = [{ place: '', tasks: config.tasks }]
  for (let list = pending.shift(); list !== undefined; list = pending.shift()) {
    const steps: Step[] = []
    for (const [index, prepared] of list.tasks.entries()) {
      const { taskType, name, timeoutMillis, flow } = prepared
      const created = scope.own(await prepared.create(host))
      const task = flow.runsCode === true || flow.setsValues === true ? withBoundSubject(created) : created
      const limited = timeoutMillis === undefined ? task : withTimeLimit(task, timeoutMillis)
      steps.push({ taskType, ...(name === undefined ? {} : { name }), task: limited })
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
    ...(accessEnds === undefined ? {} : { accessEnds }),
    ...(deadline === undefined ? {} : { deadline }),
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
