import { describe, expect, it } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { ApiServerBreaker } from './api-server-breaker.ts'

const stallMillis = 60
const away = { code: 'TARGET_UNREACHABLE', retryAfter: 2 }
const refused = async (): Promise<never> => {
  throw new GatewayError('TARGET_UNREACHABLE', 'connection refused')
}

function start() {
  let millis = 1_000_000
  const lines: string[] = []
  const metered: boolean[] = []
  const log: Logger = {
    ...silentLogger,
    info: (message) => void lines.push(message),
    warn: (message) => void lines.push(message),
  }
  const breaker = new ApiServerBreaker('k8s', {
    clock: () => new Date(millis),
    log,
    meter: { away: (_, isAway) => void metered.push(isAway) },
    stallMillis,
  })
  const asked: { readonly answer: (text: string) => void; readonly isProbe: boolean }[] = []
  /** A call that hangs until the test answers it. */
  const ask = (isProbe: boolean): Promise<string> =>
    breaker.call(() => {
      const { promise, resolve } = Promise.withResolvers<string>()
      asked.push({ answer: resolve, isProbe })
      return promise
    })
  const call = (): Promise<string> => breaker.through(ask)
  const pass = (ms: number): void => {
    millis += ms
  }
  return { breaker, lines, metered, asked, call, pass }
}

/** Opens the breaker, and leaves one hanging call. */
async function stalled() {
  const all = start()
  await expect(all.call()).rejects.toMatchObject(away)
  return all
}

describe('the breaker of an API server', () => {
  it('opens when nothing is answered while callers wait, and releases them all', async () => {
    const { call, asked, lines, metered } = start()
    const outcomes = await Promise.allSettled([call(), call(), call()])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await expect(call()).rejects.toMatchObject(away)
    expect(asked).toHaveLength(3)
    expect(metered).toEqual([false, true])
    expect(lines).toEqual([
      'the API server of a cluster cannot be asked',
      'no workload waits for the API server until it answers again',
    ])
  })

  it('stays closed while other calls are answered', async () => {
    const { breaker, call, asked, metered } = start()
    const slow = call()
    const life = setInterval(() => void breaker.call(async () => 'yes'), stallMillis / 4)
    await new Promise((resolve) => setTimeout(resolve, stallMillis * 4))
    clearInterval(life)
    asked[0]?.answer('late but there')
    expect(await slow).toBe('late but there')
    expect(metered).toEqual([false])
  })

  it('stays closed while calls fail at once', async () => {
    const { breaker, metered, lines } = start()
    for (let i = 0; i < 5; i++) {
      await expect(breaker.through(() => breaker.call(refused))).rejects.toThrow('connection refused')
    }
    expect(metered).toEqual([false])
    expect(lines).toEqual(['the API server of a cluster cannot be asked'])
  })

  it('lets one call at a time run in the background, and closes with its answer', async () => {
    const { call, asked, pass, metered, lines } = await stalled()
    asked.length = 0
    await expect(call()).rejects.toMatchObject(away)
    expect(asked).toHaveLength(0)
    pass(1_000)
    for (let i = 0; i < 5; i++) await expect(call()).rejects.toMatchObject(away)
    expect(asked.map(({ isProbe }) => isProbe)).toEqual([true])
    asked[0]?.answer('back')
    await new Promise((resolve) => setImmediate(resolve))
    const next = call()
    asked[1]?.answer('yes')
    expect(await next).toBe('yes')
    expect(metered).toEqual([false, true, false])
    expect(lines.at(-1)).toBe('the API server of a cluster answers again')
  })

  it('closes when a call that was given up is answered later', async () => {
    const { call, asked, metered } = await stalled()
    asked[0]?.answer('late')
    await new Promise((resolve) => setImmediate(resolve))
    expect(metered).toEqual([false, true, false])
    const next = call()
    asked[1]?.answer('yes')
    expect(await next).toBe('yes')
  })

  it('ignores old results: callers wait for a new answer', async () => {
    const { call, asked, pass } = await stalled()
    asked.length = 0
    pass(10_000)
    const callers = [call(), call(), call()]
    expect(asked).toHaveLength(1)
    asked[0]?.answer('mine')
    expect(await callers[0]).toBe('mine')
    await new Promise((resolve) => setImmediate(resolve))
    for (const each of asked.slice(1)) each.answer('theirs')
    expect(await Promise.all(callers)).toEqual(['mine', 'theirs', 'theirs'])
  })

  it('rejects a call whose turn comes after it opened', async () => {
    const { breaker } = await stalled()
    await expect(breaker.call(async () => 'yes', { unlessOpen: true })).rejects.toMatchObject(away)
  })
})
