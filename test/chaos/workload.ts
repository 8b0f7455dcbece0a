import { setTimeout as delay } from 'node:timers/promises'
import { callPath, workflows } from './chaos-configuration.ts'
import type { Replica } from './replica.ts'
import type { SeededRandom } from './seeded-random.ts'

export type WorkKind = 'plain' | 'nested' | 'approved' | 'poison' | 'synchronous'

/** One call that is repeated until it is acknowledged. */
export interface Submission {
  readonly ticket: string
  readonly user: string
  readonly kind: WorkKind
  /** Its position among the calls about the same user. */
  readonly place: number
  /** The run, once the call was acknowledged. */
  run?: string
  /** The status of the acknowledgement: 200 is done, 202 is still to do. */
  status?: number
  /** Runs that other answers under the same key named. */
  readonly otherRuns: Set<string>
}

const weights: Readonly<Record<WorkKind, number>> = { plain: 60, nested: 18, approved: 10, poison: 2, synchronous: 10 }

/** Endless calls, some of them one after the other about the same user. */
export function* planSubmissions(random: SeededRandom): Generator<readonly Submission[], never> {
  for (let n = 0; ; ) {
    const kind = random.weighted(weights)
    const length = kind === 'plain' && random.next() < 0.1 ? 3 : 1
    const user = `${kind === 'poison' ? 'poison' : 'user'}${n}`
    const sequence: Submission[] = []
    for (let place = 0; place < length; place++) {
      sequence.push({ ticket: `t${n++}`, user, kind, place, otherRuns: new Set<string>() })
    }
    yield sequence
  }
}

const backoffMillis = 200
const synchronousTries = 4

/** Sends calls over all replicas; a failed one is repeated with the same key, at any of them. */
export class Workload {
  acknowledged = 0
  longestPauseMillis = 0
  /** Between two calls of one sender. */
  pauseMillis = 0
  readonly submissions: Submission[] = []
  attempts = 0
  /** The number of answers by status; `none` without an answer. */
  readonly answers = new Map<string, number>()
  /** Unexpected answers. */
  readonly surprises: string[] = []
  readonly #replicas: readonly Replica[]
  readonly #random: SeededRandom
  readonly #token: string
  #stopped = false
  #latest = Date.now()

  constructor(replicas: readonly Replica[], random: SeededRandom, token: string) {
    this.#replicas = replicas
    this.#random = random
    this.#token = token
  }

  stop(): void {
    this.#stopped = true
  }

  /** Sends until it is stopped, this many sequences at a time, each in its order. */
  async send(plan: Iterator<readonly Submission[], never>, atOnce: number): Promise<void> {
    const sender = async (): Promise<void> => {
      while (!this.#stopped) {
        for (const submission of plan.next().value) {
          this.submissions.push(submission)
          await this.#submit(submission)
        }
        await delay(this.pauseMillis)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, sender))
  }

  async #submit(submission: Submission): Promise<void> {
    for (let tries = 0; !this.#stopped; tries++) {
      // The key of a synchronous call whose process died is reserved for a while. No answer was given, so the call is
      // dropped.
      if (submission.kind === 'synchronous' && submission.run === undefined && tries >= synchronousTries) return
      const answer = await this.#post(submission)
      if (answer !== undefined) {
        if (submission.run === undefined) this.#acknowledge()
        else if (submission.run !== answer.run) submission.otherRuns.add(submission.run)
        submission.run = answer.run
        submission.status = answer.status
        // Sometimes an answer is treated as lost, and the call is repeated.
        if (this.#random.next() > 0.03) return
      }
      await delay(backoffMillis * (0.5 + Math.random()))
    }
  }

  #acknowledge(): void {
    this.acknowledged++
    const now = Date.now()
    this.longestPauseMillis = Math.max(this.longestPauseMillis, now - this.#latest)
    this.#latest = now
  }

  async #post({ ticket, user, kind }: Submission): Promise<{ run: string; status: number } | undefined> {
    const { url } = this.#random.pick(this.#replicas)
    const asynchronous = kind !== 'synchronous'
    const body = {
      name: kind === 'poison' || kind === 'synchronous' ? workflows.plain : workflows[kind],
      uidAttributeName: 'uid',
      user: {
        attributes: [
          { name: 'uid', values: [user] },
          { name: 'ticket', values: [ticket] },
          { name: 'mail', values: [`${user}@example.com`] },
        ],
      },
      reason: 'chaos',
      requestParams: { ticket, 'UNISON.EXEC.TYPE': asynchronous ? 'UNISON.EXEC.ASYNC' : 'UNISON.EXEC.SYNC' },
    }
    this.attempts++
    try {
      const response = await fetch(url + callPath, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#token}`,
          'content-type': 'application/json',
          'idempotency-key': `chaos-${ticket}`,
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(asynchronous ? 30_000 : 6_000),
      })
      const text = await response.text()
      this.#count(String(response.status))
      if (response.status === 200 || response.status === 202) {
        const { workflowId } = JSON.parse(text) as { workflowId: string }
        return { run: workflowId, status: response.status }
      }
      if (response.status < 500 && ![401, 409, 429].includes(response.status)) {
        this.#surprise(`${ticket}: ${response.status} ${text.slice(0, 300)}`)
      }
    } catch (error) {
      this.#count(error instanceof Error && error.name === 'TimeoutError' ? 'late' : 'none')
      // The called replica is dead or dying.
    }
    return undefined
  }

  #count(answer: string): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1)
  }

  #surprise(text: string): void {
    if (this.surprises.length < 20) this.surprises.push(text)
  }
}
