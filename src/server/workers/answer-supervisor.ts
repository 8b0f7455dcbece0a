import process from 'node:process'
import type { Registry } from 'prom-client'
import type { Operations } from '#server/operations.ts'
import { metricsRegistry, readSnapshots } from '#server/workers/combined-metrics.ts'
import type { Answers, Question, SupervisorMessage, WorkerMessage } from '#server/workers/worker-messages.ts'

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
  process.on('message', (message: SupervisorMessage) => {
    if (message.kind !== 'question') return
    const { id, question } = message
    answers[question]().then(
      (value) => sendToSupervisor({ kind: 'answer', id, value }),
      (error: unknown) => {
        const problem = error instanceof Error ? error.message : String(error)
        sendToSupervisor({ kind: 'problem', id, problem })
      },
    )
  })
}

/** More than the supervisor waits for the other workers. */
const metricsMillis = 15_000
let asking: Promise<Registry> | undefined

/** The metrics of all workers together. Callers at the same time share one answer. */
export function metricsOfAll(): Promise<Registry> {
  asking ??= askMetrics().finally(() => {
    asking = undefined
  })
  return asking
}

function askMetrics(): Promise<Registry> {
  return new Promise((resolve, reject) => {
    const receive = (message: SupervisorMessage): void => {
      if (message.kind !== 'metrics') return
      stop()
      resolve(metricsRegistry(message.metrics))
    }
    const timer = setTimeout(() => {
      stop()
      reject(new Error(`the supervisor did not send metrics within ${metricsMillis} ms`))
    }, metricsMillis)
    const stop = (): void => {
      clearTimeout(timer)
      process.off('message', receive)
    }
    process.on('message', receive)
    sendToSupervisor({ kind: 'asksMetrics' })
  })
}
