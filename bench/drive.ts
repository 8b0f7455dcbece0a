import { type Load, type LoadResult, runLoad } from './load.ts'
import { hasWrk, runWrk } from './wrk.ts'

/** A server in its own process. */
export interface Server {
  readonly port: number
  /** Of all its threads, since it started. */
  cpuSeconds(): number
}

export interface Driven extends LoadResult {
  /** Of the server, per request: unlike the rate, it does not depend on the load generator. */
  readonly cpuMicros: number
}

export const loadGenerator = hasWrk ? 'wrk' : 'our own load generator (wrk is not installed)'

/** More requests than a server answers, since some must not be sent twice. */
const prepared = 4
const leastPrepared = 20_000
const mostPrepared = 400_000
/** The last rate of each server, by its port. */
const rates = new Map<number, number>()

export interface Drive extends Omit<Load, 'port' | 'until'> {
  /** The number of the first request, 0 unless given: some requests depend on those before. */
  readonly first?: number
}

/** Sends requests for some seconds, with `wrk` where it is installed. Throws if an answer is not the expected one. */
export async function drive(server: Server, { first = 0, ...load }: Drive): Promise<Driven> {
  const { port } = server
  const request = (n: number): string => load.request(first + n)
  const expected = (rates.get(port) ?? 0) * load.seconds * prepared
  const count = Math.min(mostPrepared, Math.max(leastPrepared * load.seconds, Math.ceil(expected)))
  const requests = hasWrk ? Array.from({ length: count }, (_, n) => request(n)) : []
  const before = server.cpuSeconds()
  const result = hasWrk
    ? await runWrk(port, load.connections, load.seconds, requests)
    : await runLoad({ ...load, request, port })
  rates.set(port, result.perSecond)
  return { ...result, cpuMicros: ((server.cpuSeconds() - before) * 1_000_000) / Math.max(1, result.count) }
}

/** Not measured, and by our own generator: `wrk` needs to know about how many requests the server answers. */
export async function warm({ port }: Server, load: Drive): Promise<LoadResult> {
  const result = await runLoad({ ...load, port })
  rates.set(port, result.perSecond)
  return result
}
