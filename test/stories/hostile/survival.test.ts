import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'

const patchOp = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

async function open(dataFolder?: string) {
  const gateway = await startGatewayProcess({
    config: 'examples/quickstart',
    ...(dataFolder === undefined ? {} : { dataFolder }),
  })
  const token = await gateway.token('--subject', 'idp', '--claim', 'role=crm')
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  return { gateway, token, call }
}

type Started = Awaited<ReturnType<typeof open>>

async function start(dataFolder: string): Promise<Started> {
  const started = await open(dataFolder)
  onTestFinished(async () => void (await started.gateway.stop()))
  return started
}

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-survival-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Creates users until the gateway, which gets the signal meanwhile, has ended; returns the acknowledged ones. */
async function createUntilGone({ call, gateway }: Started, signal: NodeJS.Signals): Promise<string[]> {
  const gone = once(gateway.process, 'exit')
  const created: string[] = []
  const work = async (worker: number): Promise<void> => {
    for (let i = 0; ; i++) {
      const userName = `${signal}-${worker}-${i}`
      const answer = await call('POST', '/scim/people/Users', { userName, displayName: `D ${userName}` }).catch(
        () => null,
      )
      if (answer === null) return
      if (answer.status === 201 && created.push(userName) === 100) gateway.process.kill(signal)
    }
  }
  await Promise.all([...Array.from({ length: 8 }, (_, worker) => work(worker)), gone])
  return created
}

/** Starts it again, and returns it. */
async function expectWhole(folder: string, created: readonly string[]): Promise<Started> {
  expect(created.length).toBeGreaterThanOrEqual(100)
  const started = await start(folder)
  const { call } = started
  for (const userName of created) {
    const { body } = await call('GET', `/scim/people/Users?filter=${encodeURIComponent(`userName eq "${userName}"`)}`)
    expect(body.Resources).toMatchObject([{ userName, displayName: `D ${userName}` }])
  }
  const database = new DatabaseSync(join(folder, 'gatehouse.db'), { readOnly: true })
  const audited = new Set(
    database
      .prepare('select subject from audit')
      .all()
      .map(({ subject }) => subject),
  )
  expect(created.filter((userName) => !audited.has(userName))).toEqual([])
  expect(database.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
  database.close()
  return started
}

test('killed while creating, then stopped while creating: acknowledged users exist, whole and audited', async () => {
  const folder = dataFolder()
  const killed = await createUntilGone(await start(folder), 'SIGKILL')
  const second = await expectWhole(folder, killed)
  const stopped = await createUntilGone(second, 'SIGTERM')
  expect(second.gateway.process.exitCode).toBe(0)
  const third = await expectWhole(folder, stopped)
  expect(await third.gateway.stop()).toBe(0)
})

describe('one gateway, to its end', () => {
  let running: Started
  beforeAll(async () => {
    running = await open()
  })
  afterAll(async () => void (await running?.gateway.stop()))

  test.each(['/scim/people', '/scim/crm'])(
    'races at %s: one wins, nothing is lost, no deleted user comes back',
    async (base) => {
      const { call } = running
      const sent = Array.from({ length: 30 }, (_, i) => ({ userName: i % 2 === 0 ? 'racer' : 'RACER' }))
      const answers = await Promise.all(sent.map((body) => call('POST', `${base}/Users`, body)))
      const [winner, ...others] = answers.sort((a, b) => a.status - b.status)
      expect([winner?.status, new Set(others.map(({ status }) => status))]).toEqual([201, new Set([409])])
      const user = `${base}/Users/${winner?.body.id}`
      const groups = (await call('GET', `${base}/Groups`)).body.Resources as { id: string }[]
      const change = (...Operations: unknown[]) => ({ schemas: [patchOp], Operations })
      const join = change({ op: 'add', path: 'members', value: [{ value: winner?.body.id }] })
      await Promise.all([
        ...groups.map(({ id }) => call('PATCH', `${base}/Groups/${id}`, join)),
        call('PATCH', user, change({ op: 'replace', path: 'displayName', value: 'D' })),
        call('PATCH', user, change({ op: 'add', path: 'emails', value: [{ value: 'r@x.org' }] })),
      ])
      const { body } = await call('GET', user)
      expect(body).toMatchObject({ displayName: 'D', emails: [{ value: 'r@x.org' }] })
      expect(body.groups).toHaveLength(groups.length)
      for (let round = 0; round < 10; round++) {
        const { id } = (await call('POST', `${base}/Users`, { userName: `leaver${round}` })).body
        const add = change({ op: 'add', path: 'members', value: [{ value: id }] })
        const leaving = call('DELETE', `${base}/Users/${id}`)
        const joining = groups.map((group) => call('PATCH', `${base}/Groups/${group.id}`, add))
        expect((await leaving).status).toBe(204)
        for (const { status } of await Promise.all(joining)) expect([204, 400]).toContain(status)
        const filter = encodeURIComponent(`userName eq "leaver${round}"`)
        expect((await call('GET', `${base}/Users?filter=${filter}`)).body.totalResults).toBe(0)
      }
    },
  )

  test('a request in progress is answered before the end, and its idle connection does not delay it', async () => {
    const { gateway, token } = running
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk.toString()
    })
    const body = JSON.stringify({ userName: 'last-one' })
    const head = [
      'POST /scim/people/Users HTTP/1.1',
      'Host: 127.0.0.1',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 5)}`)
    await new Promise((resolve) => setTimeout(resolve, 300))
    gateway.process.kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, 300))
    const ended = once(gateway.process, 'exit')
    socket.write(body.slice(5))
    await until(async () => gateway.process.exitCode !== null, 5000)
    await ended
    expect(answer).toMatch(/^HTTP\/1.1 201 /)
    expect(gateway.process.exitCode).toBe(0)
    socket.destroy()
  })
})
