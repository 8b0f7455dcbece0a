import { GatewayError } from '#kernel/errors.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import type { TaskOutcome, WorkflowTask } from '#sdk/workflow/workflow-task.ts'

/**
 * The task, failing with TARGET_TIMEOUT when one execution of it takes longer. Calls to targets are told; a task that does
 * not listen is not waited for.
 */
export function withTimeLimit(task: WorkflowTask, millis: number): WorkflowTask {
  const { foresee } = task
  return {
    ...(foresee && { foresee: (context) => foresee.call(task, context) }),
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
