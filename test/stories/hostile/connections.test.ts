import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { type Agent, globalAgent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { type Besieger, Siege, siegeSeconds } from '#testing/stories/siege.ts'

const isFull = siegeSeconds > 0
/** The short form ends when the clients were refused and came back, which takes a few seconds. */
const seconds = isFull ? siegeSeconds : 60
const args = isFull ? [] : ['--header-seconds', '3', '--request-seconds', '4']
/** The time for answering a probe, on a machine that is busy with a thousand clients. */
const probeMillis = 10_000
const password = 'lovelace-1815'

test(
  '500 half-open and 500 slow connections block no other client, and all of them end',
  async () => {
    const gateway = await startGatewayProcess({ config: 'examples/quickstart', args })
    onTestFinished(async () => void (await gateway.stop()))
    const token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
    const slowest = new Map<string, number>()
    let answered = 0
    const probe = async (name: string, ask: () => Promise<unknown>, wanted: unknown): Promise<void> => {
      const started = performance.now()
      const answer = await ask().catch((error: Error) => {
        throw new Error(`${name}, after ${Math.round(performance.now() - started)} ms: ${error.message}`)
      })
      expect(`${name}: ${JSON.stringify(answer)}`).toBe(`${name}: ${JSON.stringify(wanted)}`)
      answered++
      slowest.set(name, Math.max(slowest.get(name) ?? 0, Math.round(performance.now() - started)))
    }
    const authorization = `Bearer ${token}`
    const probes: readonly (() => Promise<void>)[] = [
      () => probe('check_alive', () => get(`${gateway.url}/check_alive`), [200, 'alive\n']),
      () => probe('ready', () => get(`${gateway.url}/ready`), [200, 'ready\n']),
      () => probe('check_alive of operators', () => get(`${gateway.metricsUrl}/check_alive`), [200, 'alive\n']),
      () =>
        probe('SCIM', async () => (await get(`${gateway.url}/scim/people/Users?count=1`, { authorization }))[0], 200),
      () =>
        probe(
          'SCIM, kept alive',
          async () => (await get(`${gateway.url}/scim/people/Users`, { authorization }, globalAgent))[0],
          200,
        ),
      () =>
        probe('login', async () => {
          const { status, location } = await new PlainBrowser(gateway.url).logIn('/main/user', 'ada', password)
          return [status, location]
        }, [303, '/main/user']),
    ]
    for (const ask of probes) await ask()
    const files = (): number => readdirSync(`/proc/${gateway.process.pid}/fd`).length
    globalAgent.destroy()
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const before = files()

    const siege = new Siege(Number(new URL(gateway.url).port), besiegers(token))
    const operations = new Siege(Number(new URL(gateway.metricsUrl).port), besiegers(token).slice(0, 200))
    onTestFinished(() => {
      siege.close()
      operations.close()
    })
    let most = 0
    const started = performance.now()
    const elapsed = (): number => Math.round((performance.now() - started) / 1000)
    const cameBack = (): boolean => siege.ended >= 1000 && siege.connected >= 1500
    for (let i = 0; elapsed() < seconds && (isFull || !cameBack()); i++) {
      await probes[i % probes.length]?.()
      most = Math.max(most, files())
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    siege.end()
    operations.end()
    globalAgent.destroy()
    const lasted = elapsed()
    const over = performance.now()
    // The hostile clients still keep their sides open.
    await waitUntil(
      () => files() <= before,
      60_000,
      () => `${files()} files are open, ${before} before`,
    )
    const freedAfter = Math.round((performance.now() - over) / 100) / 10
    const metrics = (await get(`${gateway.metricsUrl}/metrics`))[1]
    const refused = metrics.match(/^gatehouse_connections_refused_total.*$/gm)
    console.log(
      `${lasted} s: ${siege.connected} connections made, ${siege.ended} ended by the server; ${answered} probes answered, the slowest in ms`,
      Object.fromEntries(slowest),
      `files before ${before}, most ${most}, freed after ${freedAfter} s`,
      refused,
    )
    expect(siege.connected).toBeGreaterThanOrEqual(isFull ? 1000 : 1500)
    expect(siege.ended).toBeGreaterThanOrEqual(isFull ? 500 : 1000)
    expect(answered).toBeGreaterThanOrEqual(2 * probes.length)
    expect(refused?.join()).toMatch(/reason="timeout"/)
    expect(await gateway.stop()).toBe(0)
    expect(gateway.output()).not.toMatch(/"level":"error"|Unhandled/)
    // At most one line of each listener every 30 seconds.
    const warnings = gateway.output().match(/connections refused/g)?.length ?? 0
    expect(warnings).toBeLessThanOrEqual(2 * (Math.ceil(elapsed() / 30) + 1))
  },
  (seconds + 180) * 1000,
)

/** 500 half-open clients, and 500 with slow headers or bodies. */
function besiegers(token: string): Besieger[] {
  const head = (path: string, type: string) =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: ${type}\r\n`
  const kinds: readonly Besieger[] = [
    { begin: '', drip: '' },
    { begin: '', drip: `GET /check_alive HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ${'x'.repeat(1000)}` },
    { begin: 'GET /scim/people/Users HTTP/1.1\r\nHos', drip: '' },
    { begin: `${head('/scim/people/Users', 'application/json')}Content-Length: 1000\r\n\r\n`, drip: ' '.repeat(1000) },
    { begin: head('/register/submit', 'application/json'), drip: '' },
    {
      begin: `${head('/auth/formLogin', 'application/x-www-form-urlencoded')}Transfer-Encoding: chunked\r\n\r\n`,
      drip: '1\r\na\r\n'.repeat(200),
    },
  ]
  return Array.from({ length: 1000 }, (_, i) => kinds[i % kinds.length] as Besieger)
}

async function get(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  agent: Agent | false = false,
): Promise<readonly [number | undefined, string]> {
  const asked = request(url, { headers: { ...headers }, agent, signal: AbortSignal.timeout(probeMillis) })
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return [response.statusCode, await text(response)]
}

const waitUntil = (holds: () => boolean, ms: number, what: () => string): Promise<void> =>
  until(async () => holds(), ms).catch((error: Error) => {
    throw new Error(`${error.message}: ${what()}`)
  })
