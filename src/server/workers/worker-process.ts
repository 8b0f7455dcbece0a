import cluster, { type Worker } from 'node:cluster'
import { setTimeout as delay } from 'node:timers/promises'
import type { MetricSnapshot } from '#server/workers/combined-metrics.ts'
import { WholeLines } from '#server/workers/whole-lines.ts'
import {
  type Answers,
  type Question,
  type SupervisorMessage,
  type WorkerMessage,
  type WorkerSettings,
  workerVariable,
} from '#server/workers/worker-messages.ts'

interface WorkerProcessParts {
  readonly settings: WorkerSettings
  /** Where whole lines of its standard output go. */
  writeOutput(lines: string): void
  writeError(lines: string): void
  /** It serves another configuration. */
  onServes(): void
  /** The metrics of all workers, which it asks for. */
  allMetrics(): Promise<readonly MetricSnapshot[]>
}

export interface WorkerExit {
  readonly code: number | null
  readonly signal: string | null
  /** The end of what it wrote to standard error. */
  readonly lastError: string
}

const maxError = 500
/** After the exit, for the last output to arrive. A plug-in that survives its worker may keep the pipe open. */
const outputMillis = 1000

/** One process of a worker, from its start to its exit. */
export class WorkerProcess {
  /** Resolves with the lines that it reports when it serves requests; never if it exits before. */
  readonly started: Promise<readonly string[]>
  readonly exited: Promise<WorkerExit>
  readonly startedAt = performance.now()
  isStarted = false
  hasExited = false
  /** The hash of the configuration that it serves. */
  configuration: string | undefined
  /** Its latest answer. */
  metrics: readonly MetricSnapshot[] = []
  /** Checks since it last sent anything. */
  silentChecks = 0
  readonly #worker: Worker
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #questions = 0

  constructor({ settings, writeOutput, writeError, onServes, allMetrics }: WorkerProcessParts) {
    this.#worker = cluster.fork({ [workerVariable]: JSON.stringify(settings) })
    let lastError = ''
    const output = new WholeLines(writeOutput)
    const errors = new WholeLines((lines) => {
      lastError = (lastError + lines).slice(-maxError)
      writeError(lines)
    })
    const { stdout, stderr } = this.#worker.process
    stdout?.on('data', (chunk: Buffer) => output.add(chunk)).on('end', () => output.end())
    stderr?.on('data', (chunk: Buffer) => errors.add(chunk)).on('end', () => errors.end())
    const closed = new Promise<void>((resolve) => this.#worker.process.once('close', () => resolve()))
    this.started = new Promise((resolve) => {
      this.#worker.on('message', (message: WorkerMessage) => {
        this.silentChecks = 0
        if (message.kind === 'started') {
          this.isStarted = true
          resolve(message.lines)
        } else if (message.kind === 'serves') {
          this.configuration = message.configuration
          onServes()
        } else if (message.kind === 'asksMetrics') {
          // The worker reports that it got no answer.
          allMetrics()
            .then((metrics) => this.#send({ kind: 'metrics', metrics }))
            .catch(() => {})
        } else this.#answered(message)
      })
    })
    this.exited = new Promise((resolve) => {
      const exited = (exit: Omit<WorkerExit, 'lastError'>): void => {
        this.hasExited = true
        for (const { reject } of this.#asked.values()) reject(new Error('the worker exited'))
        void Promise.race([closed, delay(outputMillis)]).then(() => resolve({ ...exit, lastError: lastError.trim() }))
      }
      this.#worker.process.once('exit', (code, signal) => exited({ code, signal }))
      // Not that of its process, which the worker repeats and which then has to be handled here.
      this.#worker.on('error', (error) => {
        lastError = error.message
        // It could not be started. Any other failure is one to send a message, and the exit follows.
        if (this.pid === undefined) exited({ code: 1, signal: null })
      })
    })
  }

  get pid(): number | undefined {
    return this.#worker.process.pid
  }

  /** Rejects with the problem of the worker, or if it does not answer in time. */
  async ask<Q extends Question>(question: Q, millis: number): Promise<Answers[Q]> {
    if (this.hasExited) throw new Error('the worker exited')
    const id = ++this.#questions
    let timer: NodeJS.Timeout | undefined
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      timer = setTimeout(() => reject(new Error(`no answer after ${millis} ms`)), millis)
      this.#send({ kind: 'question', id, question }, reject)
    })
    try {
      return (await answer) as Answers[Q]
    } finally {
      clearTimeout(timer)
      this.#asked.delete(id)
    }
  }

  #send(message: SupervisorMessage, failed: (error: Error) => void = () => {}): void {
    this.#worker.process.send(message, undefined, undefined, (error) => {
      if (error !== null) failed(error)
    })
  }

  kill(signal: 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void {
    if (!this.hasExited) this.#worker.process.kill(signal)
  }

  #answered(message: Extract<WorkerMessage, { kind: 'answer' | 'problem' }>): void {
    const asked = this.#asked.get(message.id)
    if (message.kind === 'answer') asked?.resolve(message.value)
    else asked?.reject(new Error(message.problem))
  }
}
