import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { siegeSeconds } from '#testing/stories/siege.ts'

/** The requests of `docs/reference/limits.md` that cost most and that every user may send. */
const names = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
const cart = (lines: number, subjects: readonly string[]): string =>
  JSON.stringify(
    names(lines, 'line').map((uuid) => ({ uuid, name: 'vault-access', reason: 'on call', subjects: [...subjects] })),
  )
const worst: readonly (readonly [method: string, path: string, body?: string])[] = [
  ['PUT', '/main/reports/excelx', `${'\n'.repeat(31_000_000)}x`],
  ['PUT', '/main/reports/excelx', `{${names(1_200_000, 'k').map((key) => `"${key}":1`)}}`],
  ['PUT', '/main/reports/excelx', `["${'\\n'.repeat(15_000_000)}`],
  ['PUT', '/main/workflows', cart(100, names(500, 'nobody'))],
  ['PUT', '/main/workflows', cart(1, names(500, 'nobody'))],
  ['PUT', '/main/workflows', cart(100, ['ada', 'grace', 'alan', 'joan', 'hedy'])],
  ['PUT', '/main/approvals', JSON.stringify({ approvals: names(100, 'a'), approved: true, reason: 'x' })],
  ['PUT', '/main/user', JSON.stringify({ displayName: { name: 'displayName', value: 'x'.repeat(400_000) } })],
  ['POST', '/register/submit', JSON.stringify({ attributes: { userName: 'x'.repeat(200_000) }, reason: '' })],
  ['GET', `/main/search?query=${'%C3%A9*('.repeat(20)}`],
  ['GET', '/main/requests?limit=500'],
  ['GET', '/main/access?limit=500'],
  ['GET', '/main/admin/audit?format=csv'],
]

const isFull = siegeSeconds > 0
const seconds = isFull ? siegeSeconds : 2

test('the worst requests of a user leave the gateway to others', async () => {
  const gateway = await startGatewayProcess({ config: 'examples/quickstart' })
  onTestFinished(async () => void (await gateway.stop()))
  const [ada, grace] = [await PortalPerson.logIn(gateway, 'ada'), await PortalPerson.logIn(gateway, 'grace')]
  let isOver = false
  const probes = async (millis: number): Promise<number[]> => {
    const taken: number[] = []
    const end = performance.now() + millis
    while (performance.now() < end) {
      const started = performance.now()
      expect((await grace.get('/main/user')).status).toBe(200)
      taken.push(performance.now() - started)
      await delay(20)
    }
    return taken.sort((a, b) => a - b)
  }
  const quiet = await probes((seconds * 1000) / 4)
  const statuses = new Map<string, number>()
  const besiege = async (first: number): Promise<void> => {
    for (let i = first; !isOver; i++) {
      const [method, path, body] = worst[i % worst.length] ?? ['GET', '/main/user']
      const headers = { cookie: ada.cookie, 'x-requested-with': 'test', 'content-type': 'application/json' }
      const response = await fetch(gateway.url + path, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      }).catch(() => undefined)
      await response?.text().catch(() => '')
      // The gateway closes the connection of a body that it does not read.
      const key = `${path.split('?')[0]} ${response?.status ?? 'closed'}`
      statuses.set(key, (statuses.get(key) ?? 0) + 1)
    }
  }
  const besiegers = [0, 3, 6, 9].map(besiege)
  const loaded = await probes(seconds * 1000)
  isOver = true
  await Promise.all(besiegers)
  const p99 = (taken: readonly number[]): number => Math.round(taken[Math.floor(taken.length * 0.99)] ?? 0)
  const status = readFileSync(`/proc/${gateway.process.pid}/status`, 'utf8')
  const peak = Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024)
  if (isFull) {
    console.log(`p99 of others: ${p99(quiet)} ms quiet, ${p99(loaded)} ms besieged; peak memory ${peak} MB`)
    console.log(
      [...statuses]
        .sort()
        .map(([key, count]) => `${key}: ${count}`)
        .join('\n'),
    )
    expect(p99(loaded)).toBeLessThanOrEqual(p99(quiet) + 500)
    expect(peak).toBeLessThanOrEqual(350)
  }
  const failed = [...statuses.keys()].filter((key) => / 5\d\d$/.test(key) && key !== '/register/submit 500')
  expect(failed).toEqual([])
  expect(statuses.size).toBeGreaterThan(4)
  expect((await grace.get('/main/user')).status).toBe(200)
})
