import process from 'node:process'
import type { Operations } from '#server/operations.ts'
import { readSnapshots } from '#server/workers/combined-metrics.ts'
import type { Answers, Question, QuestionMessage, WorkerMessage } from '#server/workers/worker-messages.ts'

/** A supervisor that has ended gets no answers; the worker then ends too. */
export function sendToSupervisor(message: WorkerMessage): void {
  process.send?.(message, undefined, undefined, () => {})
}

/** Answers the questions of the supervisor until the process ends. */
export function answerSupervisor(operations: Operations): void {
  const answers: { readonly [Q in Question]: () => Promise<Answers[Q]> } = {
    metrics: async () => readSnapshots(await operations.metrics()),
    ready: async () => {
      await operations.ready()
      return true
    },
    health: () => operations.health(),
    alive: async () => true,
  }
  process.on('message', ({ id, question }: QuestionMessage) => {
    answers[question]().then(
      (value) => sendToSupervisor({ kind: 'answer', id, value }),
      (error: unknown) => {
        const problem = error instanceof Error ? error.message : String(error)
        sendToSupervisor({ kind: 'problem', id, problem })
      },
    )
  })
}
