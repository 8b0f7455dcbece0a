import { messageOf } from '#cli/command-line/command-line.ts'
import { type OutgoingProxy, usedProxies } from '#protocols/http/outgoing-proxy.ts'

/** One line of the doctor: what a probe saw, and what to do about it. Contains no secret. */
export interface Diagnosis {
  readonly level: 'ok' | 'warning' | 'problem'
  /** What was looked at, such as `database` or `target`. */
  readonly probe: string
  /** Which one, such as the name of a target. */
  readonly at?: string
  readonly seen: string
  /** What to do; absent if all is well. */
  readonly advice?: string
}

export interface Probe {
  readonly probe: string
  readonly at?: string
  /** What to do if it throws or takes too long. */
  readonly advice: string
  /** The proxies of its earlier calls; those of `run` are added. */
  readonly proxies?: Set<OutgoingProxy> | undefined
  run(signal: AbortSignal): Promise<readonly Finding[]>
}

export type Finding = Pick<Diagnosis, 'level' | 'seen' | 'advice'>

export const ok = (seen: string): Finding => ({ level: 'ok', seen })
export const warning = (seen: string, advice: string): Finding => ({ level: 'warning', seen, advice })
export const problem = (seen: string, advice: string): Finding => ({ level: 'problem', seen, advice })

/** The findings of all probes, in their order. They run in parallel, each for at most `millis`. */
export async function runProbes(probes: readonly Probe[], millis: number): Promise<readonly Diagnosis[]> {
  const found = await Promise.all(
    probes.map(async ({ probe, at, advice, run, proxies = new Set() }): Promise<Diagnosis[]> => {
      const of = at === undefined ? { probe } : { probe, at }
      const findings = await usedProxies
        .run(proxies, () => within(millis, run))
        .catch((error: unknown) => [problem(reasonOf(error), advice)])
      return findings.map((finding, i) => ({ ...of, ...(i === 0 ? throughProxies(finding, proxies) : finding) }))
    }),
  )
  return found.flat()
}

/** The finding with the proxies, unless it names them; a problem also with the advice to check them. */
function throughProxies(finding: Finding, proxies: ReadonlySet<OutgoingProxy>): Finding {
  const { level, seen, advice = '' } = finding
  if (proxies.size === 0) return finding
  const unnamed = Array.from(proxies, ({ name }) => name).filter((name) => !seen.includes(name))
  const named = unnamed.length === 0 ? seen : `${seen} (through the proxy ${unnamed.join(' and ')})`
  if (level !== 'problem') return { ...finding, seen: named }
  const variables = Array.from(proxies, ({ variable }) => variable).join(' and ')
  return { level, seen: named, advice: `Check the proxy, which ${variables} names. ${advice}`.trim() }
}

/** Rejects after `millis`, and then aborts the signal. */
export async function within<T>(millis: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  const expired = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const error = new Error(`no answer within ${millis / 1000} seconds`)
    expired.reject(error)
    late.abort(error)
  }, millis)
  try {
    return await Promise.race([run(late.signal), expired.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** The message of an error and of its causes. */
export function reasonOf(error: unknown): string {
  const messages: string[] = []
  for (let one: unknown = error; one !== undefined && messages.length < 4; ) {
    const { code } = one as { readonly code?: unknown }
    const message = messageOf(one) || (typeof code === 'string' ? code : '')
    if (message !== '' && !messages.some((known) => known.includes(message))) messages.push(message)
    one = one instanceof AggregateError ? one.errors[0] : one instanceof Error ? one.cause : undefined
  }
  return messages.join(': ') || 'unknown error'
}

const toleratedSeconds = 5
const rejectedSeconds = 60

/** Compares our clock with another one that was read between two of our times. */
export function clockFinding(other: Date, { from, to }: { from: number; to: number }, whose: string): Finding {
  const theirs = other.getTime()
  const millis = theirs < from ? from - theirs : theirs > to ? theirs - to : 0
  const seconds = Math.round(millis / 1000)
  if (seconds <= toleratedSeconds)
    return ok(`the clock agrees with that of ${whose} within ${toleratedSeconds} seconds`)
  const seen = `the clock is ${seconds} seconds ${theirs < from ? 'ahead of' : 'behind'} that of ${whose}`
  const advice = 'Synchronize the clocks of both machines, for example with chrony: tokens and codes depend on them.'
  return seconds <= rejectedSeconds ? warning(seen, advice) : problem(seen, advice)
}
