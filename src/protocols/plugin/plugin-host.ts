import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import {
  interrupted,
  type PluginAnswer,
  type PluginCall,
  type PluginOptions,
  PluginRun,
} from '#protocols/plugin/plugin-run.ts'

export interface PluginHostOptions extends PluginOptions {
  /** Runs after the code was loaded, if the code has the function: at first, and after each restart. */
  start(restarted: boolean): readonly PluginCall[]
  /** The process is ended after being idle for this long, and restarted for the next call. */
  readonly idleMillis?: number
}

/** How many calls may wait for one plug-in; further calls are rejected at once. */
const maxInFlight = 500
const maxShutdownMillis = 5000

/**
 * A plug-in in a separate process. Whatever its code does, the gateway continues: a call that exceeds its time
 * rejects with TARGET_TIMEOUT and the process is ended; if the process dies, running calls reject with
 * TARGET_FAILED. The next call restarts it. Functions of a realm run one after the other, so a call waits here until
 * its predecessor is done: its own time starts then, and it outlives a process that its predecessor overran.
 */
export class PluginHost {
  readonly functions: ReadonlySet<string>
  readonly #options: PluginHostOptions
  readonly #turns: KeyedQueue
  #run: Promise<PluginRun>
  #waiting = 0
  #idle: NodeJS.Timeout | undefined
  #closed = false

  private constructor(options: PluginHostOptions, run: PluginRun, functions: ReadonlySet<string>) {
    this.#options = options
    const refuse = (): GatewayError => interrupted(options.name, 'a call', 'the calls before it took too long')
    this.#turns = new KeyedQueue({ waitMillis: 2 * options.timeoutMillis, refuse })
    this.#run = Promise.resolve(run)
    this.functions = functions
  }

  /** Rejects if the code can't be loaded or a start function fails; nothing is left running then. */
  static async open(options: PluginHostOptions): Promise<PluginHost> {
    const { run, functions } = await startRun(options, false)
    const host = new PluginHost(options, run, functions)
    host.#whenIdle()
    return host
  }

  has(name: string): boolean {
    return this.functions.has(name)
  }

  async call(call: PluginCall): Promise<PluginAnswer> {
    const { name } = this.#options
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', `${name}: closed before ${call.function}`)
    if (!this.has(call.function)) throw new GatewayError('NOT_SUPPORTED', `${name}: has no function ${call.function}`)
    if (this.#waiting >= maxInFlight) throw interrupted(name, call.function, 'too many calls are in flight')
    this.#waiting++
    clearTimeout(this.#idle)
    try {
      const work = async (): Promise<PluginAnswer> => (await this.#running()).call(call)
      return await (this.#options.realm === undefined ? work() : this.#turns.run('realm', work))
    } finally {
      this.#waiting--
      this.#whenIdle()
    }
  }

  /**
   * Calls `shutdown`, if there is one and the process lives, and waits for it within limits. Can be called
   * repeatedly.
   */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#idle)
    const run = await this.#run.catch(() => undefined)
    if (run === undefined) return
    await this.#shutDown(run)
  }

  async #shutDown(run: PluginRun): Promise<void> {
    if (this.has('shutdown') && !run.ended) {
      const limit = Math.min(maxShutdownMillis, this.#options.timeoutMillis)
      await run.call({ function: 'shutdown', args: [] }, limit).catch((error: unknown) => {
        this.#options.log.warn('plug-in shutdown failed', { plugin: this.#options.name, error })
      })
    }
    await run.close()
  }

  /** One start at a time, shared by all calls that need it. */
  async #running(): Promise<PluginRun> {
    const current = this.#run
    const run = await current.catch(() => undefined)
    if (run !== undefined && !run.ended) return run
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', `${this.#options.name}: closed`)
    if (this.#run === current) {
      this.#run = startRun(this.#options, true).then((started) => started.run)
      this.#run.catch(() => {})
    }
    return this.#run
  }

  #whenIdle(): void {
    const { idleMillis } = this.#options
    if (idleMillis === undefined || this.#waiting > 0 || this.#closed) return
    clearTimeout(this.#idle)
    this.#idle = setTimeout(async () => {
      const run = await this.#run.catch(() => undefined)
      if (run === undefined || this.#waiting > 0 || this.#closed) return
      this.#run = Promise.reject(new Error('idle'))
      this.#run.catch(() => {})
      await this.#shutDown(run)
    }, idleMillis)
    this.#idle.unref()
  }
}

async function startRun(options: PluginHostOptions, restarted: boolean) {
  const run = new PluginRun(options)
  try {
    const functions = await run.loaded()
    for (const call of options.start(restarted)) {
      if (functions.has(call.function)) await run.call(call)
    }
    return { run, functions }
  } catch (error) {
    await run.close()
    throw error
  }
}
