import { expect, test } from 'vitest'
import type { PreviewContext, TaskContext, WorkflowTask } from '#sdk/workflow/workflow-task.ts'
import { withTimeLimit } from '#workflows/definitions/definitions.ts'

const context = (signal?: AbortSignal): TaskContext =>
  ({ forTarget: () => (signal === undefined ? {} : { signal }) }) as unknown as TaskContext

test('a task that takes too long fails, and its calls are aborted', async () => {
  let reason: unknown
  const stuck: WorkflowTask = {
    run: ({ forTarget }) => {
      const { signal } = forTarget('t')
      signal?.addEventListener('abort', () => {
        reason = signal.reason
      })
      return new Promise(() => {})
    },
  }
  await expect(withTimeLimit(stuck, 20).run(context())).rejects.toMatchObject({ code: 'TARGET_TIMEOUT', status: 504 })
  expect(reason).toMatchObject({ code: 'TARGET_TIMEOUT' })
})

test('a time limit keeps the preview of a task', async () => {
  const task: WorkflowTask = { run: () => ({ kind: 'next' }), preview: () => ({ kind: 'stop' }) }
  expect(await withTimeLimit(task, 20).preview?.({} as PreviewContext)).toEqual({ kind: 'stop' })
  expect(withTimeLimit({ run: task.run }, 20).preview).toBeUndefined()
})

test('the caller can still abort the task, and one that is in time is not affected', async () => {
  const controller = new AbortController()
  const signals: (AbortSignal | undefined)[] = []
  const quick: WorkflowTask = {
    run: ({ forTarget }) => {
      signals.push(forTarget('t').signal)
      return { kind: 'next' }
    },
  }
  expect(await withTimeLimit(quick, 20).run(context(controller.signal))).toEqual({ kind: 'next' })
  await new Promise((resolve) => setTimeout(resolve, 40))
  expect(signals[0]?.aborted).toBe(false)
  controller.abort(new Error('lost'))
  expect(signals[0]?.reason).toMatchObject({ message: 'lost' })
})
