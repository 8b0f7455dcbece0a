import { startBare } from './bare-process.ts'
import { runLoad } from './load.ts'
import type { RequestMaker } from './requests.ts'

export const connections = 16
const warmSeconds = 8
export const turns = 5
export const turnSeconds = 1

export interface Paired {
  readonly perSecond: number
  readonly bare: number
  readonly share: number
}

/** A bare Fastify route that answers the same bytes. */
export const bareRoute = (body: string) => startBare('bench/bare-route.ts', body)

export const bareRequest = (): string => `GET /user HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

/**
 * Warms up, then alternates with the bare route, since a shared machine is not equally fast all the time: the share is
 * the median over the turns.
 */
export async function paired(
  barePort: number,
  port: number,
  request: RequestMaker,
  expectedStatus = 200,
): Promise<Paired> {
  let sent = 0
  const load = { port, connections, request: () => request(sent++), expectedStatus }
  const bareLoad = { port: barePort, connections, request: bareRequest, expectedStatus: 200 }
  await runLoad({ ...load, seconds: warmSeconds })
  await runLoad({ ...bareLoad, seconds: 1 })
  const pairs: { readonly perSecond: number; readonly bare: number }[] = []
  for (let turn = 0; turn < turns; turn++) {
    const { perSecond: bare } = await runLoad({ ...bareLoad, seconds: turnSeconds })
    const { perSecond } = await runLoad({ ...load, seconds: turnSeconds })
    pairs.push({ perSecond, bare })
  }
  return {
    perSecond: median(pairs.map(({ perSecond }) => perSecond)),
    bare: median(pairs.map(({ bare }) => bare)),
    share: median(pairs.map(({ perSecond, bare }) => perSecond / bare)),
  }
}

export const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
