import { GatewayError } from '#kernel/errors.ts'

/** Who may wait for one stream at a time. */
const maxWaiters = 16
/** How often to look for what another process has appended. */
const lookEveryMillis = 1000

/** Those who wait for something new in a stream. */
export class StreamWaiters {
  readonly #waiting = new Map<string, Set<() => void>>()
  #closed = false

  /** What `look` finds, at once or as soon as there is something; undefined when the time is up or the signal fires. */
  async until<T>(
    stream: string,
    look: () => Promise<T | undefined>,
    millis: number,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const deadline = performance.now() + millis
    const waiting = this.#waiting.get(stream) ?? new Set()
    this.#waiting.set(stream, waiting)
    let wake: () => void = () => {}
    const waiter = () => wake()
    if (millis > 0 && waiting.size >= maxWaiters) {
      throw new GatewayError('TOO_MANY_REQUESTS', `${waiting.size} wait for stream ${stream}`, { retryAfter: 5 })
    }
    waiting.add(waiter)
    try {
      for (;;) {
        let woken = false
        const next = new Promise<void>((resolve) => {
          wake = () => {
            woken = true
            resolve()
          }
        })
        const found = await look()
        const left = deadline - performance.now()
        if (found !== undefined || left <= 0 || this.#closed || signal.aborted) return found
        if (!woken) await nap(next, Math.min(left, lookEveryMillis), signal)
      }
    } finally {
      waiting.delete(waiter)
      if (waiting.size === 0) this.#waiting.delete(stream)
    }
  }

  wake(stream: string): void {
    for (const waiter of this.#waiting.get(stream) ?? []) waiter()
  }

  /** All who wait look once more and then go. */
  close(): void {
    this.#closed = true
    for (const stream of this.#waiting.keys()) this.wake(stream)
  }
}

function nap(woken: Promise<void>, millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, millis)
    signal.addEventListener('abort', end)
    void woken.then(end)
  })
}
