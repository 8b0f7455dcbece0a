import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { mailReader } from '#mail/mail-reader.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'
import { usePortalApi } from '#testing/stories/portal-api-story.ts'

/** Each case has its own workflow and group. A group that ends by itself lasts for seconds. */
const workflow = (name: string, ends: 'chosen' | 'soon'): string => `---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ${name} }
spec:
  label: Access ${name}
  inList: true
  orgId: root
${ends === 'chosen' ? '  accessEnds: { choose: required, longest: P90D }\n' : ''}  tasks:
    - taskType: addGroup
      name: ${name}
      ${ends === 'chosen' ? 'expiresAt: $accessEnds$' : 'expiresAfter: 2s'}
    - { taskType: provision, target: people, sync: true, attributes: [uid] }
`

const extension = `    - taskType: customTask
      className: tasks.ExtendAccess
      params: { target: people, group: extended, expiresAt: $accessEnds$ }
`

const documents = `apiVersion: openunison.tremolo.io/v1
kind: OUJob
metadata: { name: outcomes }
spec:
  className: jobs.MailOutcomes
  cronSchedule: { seconds: "*", minutes: "*", hours: "*", dayOfMonth: "*", month: "*", dayOfWeek: "?", year: "*" }
  params: [{ name: outcomes, value: completed }, { name: outcomes, value: cancelled }]
${workflow('returned', 'chosen')}${workflow('extended', 'chosen')}${workflow('expired', 'soon')}---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: longer }
spec:
  label: Longer access
  inList: true
  orgId: root
  accessEnds: { choose: required, longest: P90D }
  tasks:
${extension}`

const day = 86_400_000
const inDays = (days: number): string => new Date(Date.now() + days * day).toISOString()

interface Shown {
  /** The access of the request, in the list and in its details. */
  readonly request: Readonly<Record<string, unknown>> | undefined
  /** Until when My access, and the notice on the front page, say that the user has it. */
  readonly mine: string | undefined
  readonly ended: boolean
  /** The directory. */
  readonly isMember: boolean
  readonly counted: Readonly<Record<string, number>>
}

describe('what is said about access with an expiry date', () => {
  let mails: MailServer
  let config = ''
  const api = usePortalApi(undefined, async () => {
    mails = await mailServer()
    config = mkdtempSync(join(tmpdir(), 'gatehouse-access-'))
    cpSync('examples/portal-api', config, { recursive: true })
    const change = (file: string, before: string, after: string): void => {
      const text = readFileSync(join(config, file), 'utf8')
      expect(text).toContain(before)
      writeFileSync(join(config, file), text.replace(before, after))
    }
    change('values.yaml', '"2525"', `"${mails.port}"`)
    const groups = ['returned', 'extended', 'expired'].map((name) => `{ "name": "${name}" }, `).join('')
    change('seed/people.json', '{ "name": "vault" }', `${groups}{ "name": "vault" }`)
    writeFileSync(join(config, 'access.yaml'), documents)
    return config
  })
  afterAll(async () => {
    await mails?.close()
    rmSync(config, { recursive: true, force: true })
  })

  async function send(path: string, as = 'ada', method = 'GET', body?: unknown) {
    const response = await api.send(path, { as, method, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
  const get = async (path: string, as?: string) => {
    const { status, body } = await send(path, as)
    expect({ path, status }).toEqual({ path, status: 200 })
    return body
  }

  /** Ada requests it; returns the result and the request. */
  async function request(name: string, expires?: string) {
    const uuid = crypto.randomUUID()
    const { body } = await send('/workflows', 'ada', 'PUT', [{ uuid, name, reason: 'story', expires }])
    const { requests } = await get('/requests')
    const id: string = requests.find((one: { name: string }) => one.name === name)?.id
    return { result: body[uuid], id }
  }
  const reaches = (id: string, state: string) =>
    until(async () => (await get(`/requests/${id}`)).state === state, 120_000)
  /** Requests it, and waits until it is done. */
  async function obtain(name: string, expires?: string): Promise<string> {
    const { result, id } = await request(name, expires)
    expect(result).toBe('success')
    await reaches(id, 'completed')
    return id
  }
  async function giveBack(name: string): Promise<void> {
    const { id } = (await get('/access')).access.find((one: { name: string }) => one.name === name)
    const { status, body } = await send(`/access/${id}/return`, 'ada', 'POST')
    expect(status).toBe(202)
    await reaches(body.request, 'completed')
    expect(await get(`/requests/${body.request}`)).toMatchObject({
      label: `Removal of access: ${name} (people)`,
      reason: 'The access was given back.',
    })
  }

  /** Everything that shows the access, read at about the same time. */
  async function shown(group: string, id: string, name = group): Promise<Shown> {
    const [{ requests }, details, { access, ended }, { groups }, { notifications }, { workflows }] = await Promise.all([
      get('/requests'),
      get(`/requests/${id}`),
      get('/access'),
      get('/user'),
      get('/notifications'),
      get('/admin/statistics?by=hour&from=2h', 'linus'),
    ])
    const isGroup = (one: { name?: string }): boolean => one.name === group
    expect(requests.find((one: { id: string }) => one.id === id).access).toEqual(details.access)
    const mine = access.find(isGroup)?.expires
    // The front page warns of access that ends soon, and of no other.
    for (const { expires } of notifications.filter(isGroup)) expect(expires).toBe(mine)
    const counts: Readonly<Record<string, number>> = workflows.find(
      (one: { name: string }) => one.name === name,
    ).requests
    return {
      request: details.access,
      mine,
      ended: ended.some(isGroup),
      isMember: groups.includes(group),
      counted: Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    }
  }
  const active = (expires: string, completed = 1): Shown => ({
    request: { state: 'active', expires },
    mine: expires,
    ended: false,
    isMember: true,
    counted: { completed },
  })
  const gone = (more: object, completed = 1): Shown => ({
    request: { state: 'ended', expires: expect.any(String), ended: expect.any(String), ...more },
    mine: undefined,
    ended: true,
    isMember: false,
    counted: { completed },
  })

  /** The texts of the mails about requests for it, in order. */
  const mailsAbout = (label: string): readonly string[] =>
    mails.mails
      .filter(({ headers }) => headers.get('subject')?.[0] === `Done: ${label}`)
      .map(({ parts }) => (parts.find(({ type }) => type.startsWith('text/plain'))?.body ?? '').replaceAll(/\s+/g, ' '))
  const dateText = (at: string): string => mailReader('en').dateText(new Date(at)).replaceAll(/\s+/g, ' ')

  test('access that was given back is not promised by its request', async () => {
    const expires = inDays(5)
    const id = await obtain('returned', expires)
    expect(await shown('returned', id)).toEqual(active(expires))
    await until(async () => mailsAbout('Access returned').length > 0, 120_000)
    expect(mailsAbout('Access returned')[0]).toContain(`The access expires on ${dateText(expires)}.`)
    await giveBack('returned')
    expect(await shown('returned', id)).toEqual(gone({ expires, givenBack: true }))
    // What follows is another request, and the first one still says that its access has ended.
    const again = await obtain('returned', inDays(3))
    expect((await shown('returned', again)).request).toMatchObject({ state: 'active' })
    expect((await get(`/requests/${id}`)).access).toMatchObject({ state: 'ended', givenBack: true })
  }, 300_000)

  test('an extension starts at the present end, and every request shows the end that holds', async () => {
    const [first, later, latest] = [inDays(5), inDays(20), inDays(30)]
    const one = await obtain('extended', first)
    for (const expires of [inDays(3), first]) {
      expect((await request('extended', expires)).result).toBe(`You have this until ${first}; choose a later time`)
    }
    expect(await shown('extended', one)).toEqual(active(first))
    const two = await obtain('extended', later)
    for (const id of [one, two]) expect(await shown('extended', id)).toEqual(active(later, 2))
    await until(async () => mailsAbout('Access extended').length > 1, 120_000)
    expect(mailsAbout('Access extended')[1]).toContain(`The access expires on ${dateText(later)}.`)
    const three = await obtain('longer', latest)
    for (const id of [one, two]) expect(await shown('extended', id)).toEqual(active(latest, 2))
    expect(await shown('extended', three, 'longer')).toEqual(active(latest))
    expect((await request('longer', inDays(25))).result).toBe(`You have this until ${latest}; choose a later time`)
    await giveBack('extended')
    for (const id of [one, two]) expect(await shown('extended', id)).toEqual(gone({ givenBack: true }, 2))
    expect(await shown('extended', three, 'longer')).toEqual(gone({ givenBack: true }))
  }, 300_000)

  test('an extension that would change nothing is on hold, and not done', async () => {
    await obtain('extended', inDays(40))
    // The workflow extended another grant, so only the task can see this.
    const { id } = await request('longer', inDays(35))
    await reaches(id, 'incident')
    const stopped = await get(`/requests/${id}`)
    expect(stopped).toMatchObject({ failure: { code: 'CONFLICT' } })
    expect(stopped.access).toBeUndefined()
    const { fence } = await get(`/admin/runs/${id}`, 'linus')
    await send(`/admin/runs/${id}/cancel`, 'linus', 'POST', { fence, reason: 'It lasts longer' })
    await reaches(id, 'cancelled')
    const ended = await get(`/requests/${id}`)
    expect(ended.failure).toBeUndefined()
    expect(ended).toMatchObject({
      cancel: { by: 'linus', reason: 'It lasts longer' },
      names: { linus: 'Linus Pauling' },
    })
    const { requests } = await get('/requests')
    expect(requests.find((one: { id: string }) => one.id === id)).toMatchObject({
      state: 'cancelled',
      cancel: { by: 'linus' },
    })
    const subject = 'Cancelled: Longer access'
    await until(async () => mails.mails.some(({ headers }) => headers.get('subject')?.[0] === subject), 120_000)
  }, 300_000)

  test('access that expired has ended everywhere', async () => {
    const id = await obtain('expired')
    const isGone = async () => (await get(`/requests/${id}`)).access.state === 'ended'
    await until(isGone, 120_000)
    expect(await shown('expired', id)).toEqual(gone({}))
    await until(async () => mailsAbout('Access expired').length > 0, 120_000)
    // It may have been written before the end, and says what was so then.
    expect(mailsAbout('Access expired')[0]).toMatch(/The access (?:expires on|ended on|has expired) /)
    const { runs } = await get('/admin/runs?name=gatehouse-revoke-access', 'linus')
    const reasons = runs.map(({ reason }: { reason: string }) => reason)
    expect(reasons).toContain('The access expired.')
  }, 300_000)
})
