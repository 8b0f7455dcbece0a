import { describe, expect, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { demoPasswords, PortalPerson } from '#testing/stories/portal-story.ts'

/** The events that the user's portal gets, as text. */
async function listen(
  url: string,
  { cookie }: PortalPerson,
  query = '',
): Promise<{ text(): string; ended: Promise<void> }> {
  const { status, body } = await fetch(`${url}/main/events${query}`, {
    headers: { cookie, accept: 'text/event-stream' },
  })
  expect(status).toBe(200)
  let text = ''
  const read = async (): Promise<void> => {
    for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) text += part
  }
  return { text: () => text, ended: read() }
}

describe.skipIf(postgresUrl() === '')('two replicas with one PostgreSQL', () => {
  test('a login on one replica continues on the other, with the Main and Token APIs', async () => {
    const config = 'examples/quickstart'
    const args = ['--database', await freshSchema()]
    const key = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 9).toString('base64') }
    const a = await startGatewayProcess({ config, args, environment: key })
    onTestFinished(async () => void (await a.stop()))
    // Both have one public address, as behind a load balancer.
    const b = await startGatewayProcess({ config, args, environment: { ...key, GATEHOUSE_URL: a.url } })
    onTestFinished(async () => void (await b.stop()))

    const begun = new PlainBrowser(a.url)
    const page = await begun.get((await begun.get('/main/user')).location)
    const finished = begun.at(b.url)
    const done = await finished.post(page.action, { user: 'ada', pwd: demoPasswords.ada })
    expect([done.status, done.location]).toEqual([303, '/main/user'])
    const onB = new PortalPerson(b.url, finished)
    const onA = onB.at(a)

    expect((await onA.get('/main/user')).json).toMatchObject({ uid: 'ada' })
    const [tokenA, tokenB] = [await onA.get('/token/user'), await onB.get('/token/user')]
    expect(tokenA.json.token.id_token).toBe(tokenB.json.token.id_token)
    for (const { url } of [a, b]) {
      const attributes = [{ name: 'login', values: ['ada'] }]
      const called = await fetch(`${url}/call-workflow`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokenA.json.token.id_token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'crm-sync', uidAttributeName: 'login', user: { attributes } }),
      })
      expect([url, called.status, await called.json()]).toMatchObject([url, 200, { status: 'completed' }])
    }

    const grace = await PortalPerson.logIn(b, 'grace')
    const [adaHears, graceHears] = [await listen(b.url, onB), await listen(a.url, grace.at(a))]
    await until(async () => adaHears.text().includes('all') && graceHears.text().includes('all'), 30_000)
    const line = { uuid: 'replicas', name: 'vault-access', reason: 'on call' }
    expect((await onA.send('PUT', '/main/workflows', [line])).json).toEqual({ replicas: 'success' })
    expect((await onB.send('PUT', '/main/workflows', [line])).json).toEqual({ replicas: 'success' })
    await until(async () => /event: requests\n.*"ids":\[/.test(adaHears.text()), 30_000)
    await until(async () => graceHears.text().includes('event: approvals'), 30_000)
    expect(graceHears.text()).not.toContain('event: requests')
    let open: { approval: string }[] = []
    await until(async () => {
      open = (await grace.get('/main/approvals')).json.approvals
      return open.length > 0
    }, 30_000)
    expect(open).toHaveLength(1)
    const votes = await Promise.all(
      [grace, grace.at(a)].map((one) =>
        one.send('PUT', `/main/approvals/${open[0]?.approval}`, { approved: true, reason: 'fine' }),
      ),
    )
    expect(votes.map(({ status }) => status).sort()).toEqual([200, 409])
    await until(async () => (await onA.get('/main/user')).json.groups.includes('vault'), 30_000)

    const alan = await PortalPerson.logIn(a, 'alan')
    const watching = [
      await listen(b.url, onB, '?sessions=true'),
      await listen(a.url, alan, '?sessionsOf=ada'),
      await listen(b.url, grace, '?sessions=true'),
    ]
    const announced = (): readonly number[] => watching.map(({ text }) => text().split('event: sessions').length - 1)
    await until(async () => announced().every((count) => count === 1), 30_000)
    const elsewhere = await PortalPerson.logIn(a, 'ada')
    await until(async () => announced().join() === '2,2,1', 30_000)
    expect((await elsewhere.browser.get('/main/logout')).status).toBe(303)
    await until(async () => announced().join() === '3,3,1', 30_000)

    expect((await onB.browser.get('/main/logout')).status).toBe(303)
    for (const one of [onA, onB]) {
      expect((await one.get('/main/user')).status).toBe(401)
      expect((await one.get('/token/user')).status).toBe(401)
      expect((await one.get('/sessioncheck')).status).toBe(401)
    }
    // A stream ends with its session, and does not keep a gateway from stopping.
    await adaHears.ended
    expect(await a.stop()).toBe(0)
    await graceHears.ended
  })
})
