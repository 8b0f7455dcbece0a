import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { until } from '#testing/gateway/gateway-process.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'
import { usePortalApi } from '#testing/stories/portal-api-story.ts'

/** An application with accounts. It answers with this status instead where one is set. */
async function startApplication() {
  const accounts = new Map<string, string>()
  let trouble: number | undefined
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const login = decodeURIComponent(request.url?.split('/')[2] ?? '')
    const send = (status: number, text = '{}', headers = {}): void =>
      void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
    if (trouble !== undefined) return send(trouble, '{}', { 'retry-after': '5' })
    if (request.method === 'POST') accounts.set(JSON.parse(body).login, body)
    else if (request.method === 'PUT') accounts.set(login, body)
    const account = request.method === 'POST' ? body : accounts.get(login)
    return account === undefined ? send(404) : send(200, account)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerWith: (status: number | undefined) => {
      trouble = status
    },
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Each outcome has its own workflow, so that the statistics count it apart. */
const workflow = (name: string, label: string, tasks: string, more = ''): string => `---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ${name} }
spec:
  label: ${label}
  inList: true
  orgId: root
${more}  tasks:
${tasks}`

const ask = `    - taskType: approval
      label: For \${TREMOLO_USER_ID}
      emailTemplate: Please decide.
      mailAttr: mail
      failureEmailSubject: The owners said no
      failureEmailMsg: Ask again next year.
      approvers: [{ scope: group, constraint: "cn=owners,ou=groups,ou=people,o=Tremolo" }]
`
const provision = `    - { taskType: provision, target: crm, sync: false, attributes: [displayName] }
`

const documents = (url: string): string => `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: crm }
spec:
  className: targets.Webhook
  params:
    - { name: url, value: "${url}" }
    - { name: retries, value: "0" }
    - { name: user.userID, value: $.login }
    - { name: user.attribute.displayName, value: $.name }
    - { name: findUser, value: "GET /users/{userID}" }
    - { name: createUser, value: "POST /users" }
    - { name: createUser.body, value: '{"login": "{userID}", "name": "{displayName}"}' }
    - { name: updateUser, value: "PUT /users/{userID}" }
    - { name: updateUser.body, value: '{"login": "{userID}", "name": "{displayName}"}' }
    - { name: deleteUser, value: "DELETE /users/{userID}" }
---
apiVersion: openunison.tremolo.io/v1
kind: OUJob
metadata: { name: outcomes }
spec:
  className: jobs.MailOutcomes
  cronSchedule: { seconds: "*", minutes: "*", hours: "*", dayOfMonth: "*", month: "*", dayOfWeek: "?", year: "*" }
  params: [${['completed', 'denied', 'expired', 'failed', 'cancelled', 'incident']
    .map((outcome) => `{ name: outcomes, value: ${outcome} }`)
    .join(', ')}]
${workflow('deny', 'A car', ask)}${workflow('expire', 'A boat', ask, '  deadline: 2s\n')}${workflow('cancel', 'A bike', ask)}${workflow(
  'stop',
  'A plane',
  ask,
)}${workflow('fail', 'A horse', provision)}${workflow('retry', 'A scooter', provision)}${workflow('hold', 'A tram', provision)}`

/** What every place shows about the outcome of a request. */
interface Shown {
  readonly list: string
  readonly details: string
  /** Whether the front page lists it as a request that did not lead to access. */
  readonly home: boolean
  readonly notification: string | undefined
  readonly console: string
  /** The requests of the workflow by state, without zeros. */
  readonly counted: Readonly<Record<string, number>>
}

describe('outcomes', () => {
  let mails: MailServer
  let application: Awaited<ReturnType<typeof startApplication>>
  let config = ''
  const api = usePortalApi(undefined, async () => {
    mails = await mailServer()
    application = await startApplication()
    config = mkdtempSync(join(tmpdir(), 'gatehouse-outcomes-'))
    cpSync('examples/portal-api', config, { recursive: true })
    const change = (file: string, before: string, after: string): void => {
      const text = readFileSync(join(config, file), 'utf8')
      expect(text).toContain(before)
      writeFileSync(join(config, file), text.replace(before, after))
    }
    change('values.yaml', '"2525"', `"${mails.port}"`)
    change('portal.yaml', 'canPreApprove: "NO"', 'canPreApprove: "YES"')
    writeFileSync(join(config, 'outcomes.yaml'), documents(application.url))
    return config
  })
  afterAll(async () => {
    await mails?.close()
    await application?.close()
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
  async function request(name: string, more: object = {}) {
    const uuid = crypto.randomUUID()
    const { body } = await send('/workflows', 'ada', 'PUT', [{ uuid, name, reason: 'story', ...more }])
    const { requests } = await get('/requests')
    const id: string = requests.find((one: { name: string }) => one.name === name).id
    return { result: body[uuid], id }
  }
  const reaches = (id: string, state: string) =>
    until(async () => (await get(`/requests/${id}`)).state === state, 120_000)
  async function approvalOf(id: string): Promise<string> {
    let found: { approval: string } | undefined
    await until(async () => {
      const { approvals } = await get('/approvals', 'grace')
      found = approvals.find((one: { workflow: string }) => one.workflow === id)
      return found !== undefined
    }, 120_000)
    return found?.approval ?? ''
  }

  const isIt =
    (id: string) =>
    (one: { id: string }): boolean =>
      one.id === id

  /** Everything that shows the request, read at about the same time. */
  async function shown(name: string, id: string): Promise<Shown> {
    const [requests, details, troubled, { notifications }, run, { runs }, { workflows }] = await Promise.all([
      get('/requests'),
      get(`/requests/${id}`),
      get('/requests?state=failed&state=incident&state=denied&state=expired&state=cancelled&limit=20'),
      get('/notifications'),
      get(`/admin/runs/${id}`, 'linus'),
      get('/admin/runs', 'linus'),
      get('/admin/statistics?by=hour&from=2h', 'linus'),
    ])
    const counts: Readonly<Record<string, number>> = workflows.find(
      (one: { name: string }) => one.name === name,
    ).requests
    const row = runs.find(isIt(id))
    expect(row.state).toBe(run.state)
    const home = troubled.requests.find(isIt(id))
    return {
      list: requests.requests.find(isIt(id)).state,
      details: details.state,
      home: home !== undefined && home.cancel?.by !== 'ada',
      notification: notifications.find((one: { request?: string }) => one.request === id)?.state,
      console: run.state,
      counted: Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    }
  }
  const everywhere = (state: string, home = true): Shown => ({
    list: state,
    details: state,
    home,
    notification: state,
    console: state,
    counted: { [state]: 1 },
  })

  const outcomeMails = (label: string) =>
    mails.mails.filter(
      ({ to, headers }) => to.includes('ada@example.com') && headers.get('subject')?.[0]?.endsWith(`: ${label}`),
    )
  const subjectsAbout = (label: string) => outcomeMails(label).map(({ headers }) => headers.get('subject')?.[0])
  async function mailed(subject: string, label: string, text: string): Promise<void> {
    await until(async () => subjectsAbout(label).includes(`${subject}: ${label}`), 120_000)
    const mail = outcomeMails(label).find(({ headers }) => headers.get('subject')?.[0] === `${subject}: ${label}`)
    const body = mail?.parts.find(({ type }) => type.startsWith('text/plain'))?.body.replaceAll(/\s+/g, ' ')
    expect(body).toContain(`Your request "${label}" for Ada Lovelace ${text}`)
  }

  test('a denied request is denied everywhere, with the comment', async () => {
    const { id } = await request('deny')
    const approval = await approvalOf(id)
    await send(`/approvals/${approval}`, 'grace', 'PUT', { approved: false, reason: 'No parking' })
    await reaches(id, 'denied')
    expect(await shown('deny', id)).toEqual(everywhere('denied'))
    const { approvals, names } = await get(`/requests/${id}`)
    expect(approvals).toMatchObject([{ status: 'denied', decision: { by: 'grace', comment: 'No parking' } }])
    expect(names).toEqual({ ada: 'Ada Lovelace', grace: 'Grace Hopper' })
    const { decisions } = await get('/decisions', 'grace')
    expect(decisions).toMatchObject([{ workflow: id, status: 'denied', displayName: 'Ada Lovelace' }])
    await mailed('Denied', 'A car', 'was denied. Comment of the approver: No parking')
  }, 240_000)

  test('a request that no one decided by its deadline expires everywhere, and can no longer be decided', async () => {
    const { id } = await request('expire')
    await reaches(id, 'expired')
    expect(await shown('expire', id)).toEqual(everywhere('expired'))
    const { approvals, ended, mayCancel } = await get(`/requests/${id}`)
    expect({ ended, mayCancel }).toEqual({ ended: expect.any(String), mayCancel: false })
    for (const { status } of approvals) expect(status).toBe('cancelled')
    const waiting = (await get('/approvals', 'grace')).approvals
    expect(waiting.filter((one: { workflow: string }) => one.workflow === id)).toEqual([])
    await mailed('Expired', 'A boat', 'expired: it had not ended by its deadline. Nothing was changed.')
  }, 240_000)

  test('a request that its requester cancelled is cancelled everywhere, and no news to the requester', async () => {
    const { id } = await request('cancel')
    await approvalOf(id)
    await send(`/requests/${id}/cancel`, 'ada', 'POST', { reason: 'I walk' })
    expect(await shown('cancel', id)).toEqual(everywhere('cancelled', false))
    expect((await get(`/requests/${id}`)).cancel).toEqual({ by: 'ada', reason: 'I walk' })
    const { notifications } = await get('/notifications')
    expect(notifications.find((one: { request?: string }) => one.request === id)).toMatchObject({ read: true })
  }, 240_000)

  test('a request that an administrator cancelled says so, with the reason', async () => {
    const { id } = await request('stop')
    await approvalOf(id)
    const { fence } = await get(`/admin/runs/${id}`, 'linus')
    await send(`/admin/runs/${id}/cancel`, 'linus', 'POST', { fence, reason: 'No budget' })
    await reaches(id, 'cancelled')
    expect(await shown('stop', id)).toEqual(everywhere('cancelled'))
    const { cancel, names } = await get(`/requests/${id}`)
    expect({ cancel, who: names.linus }).toEqual({ cancel: { by: 'linus', reason: 'No budget' }, who: 'Linus Pauling' })
    await mailed('Cancelled', 'A plane', 'was cancelled: No budget. Nothing was changed.')
  }, 240_000)

  test('a request that failed within its call is failed everywhere, and not reported as submitted', async () => {
    application.answerWith(422)
    const decision = { doPreApproval: true, approved: true, approvalReason: 'mine' }
    const { result, id } = await request('fail', decision)
    application.answerWith(undefined)
    expect(result).toBe('Unable to submit')
    expect(await shown('fail', id)).toEqual(everywhere('failed'))
    expect(await get(`/requests/${id}`)).toMatchObject({
      failure: { code: 'TARGET_FAILED' },
      timeline: [{ taskType: 'provision', outcome: 'failed' }],
    })
    await mailed('Failed', 'A horse', 'failed: ')
  }, 240_000)

  test('a step that is retried is queued everywhere, and done after the retry', async () => {
    application.answerWith(503)
    const { id } = await request('retry')
    await until(async () => (await get(`/requests/${id}`)).retry !== undefined, 120_000)
    expect(await shown('retry', id)).toEqual({ ...everywhere('ready', false), notification: undefined })
    const before = await get(`/requests/${id}`)
    expect(before).toMatchObject({ retry: { attempt: 2 }, timeline: [{ outcome: 'failed', attempt: 1 }] })
    expect(before.failure).toBeUndefined()
    application.answerWith(undefined)
    await reaches(id, 'completed')
    expect(await shown('retry', id)).toEqual(everywhere('completed', false))
    await mailed('Done', 'A scooter', 'is done.')
    expect(subjectsAbout('A scooter')).toEqual(['Done: A scooter'])
  }, 300_000)

  test('a request on hold is on hold everywhere, until an administrator retries it', async () => {
    application.answerWith(422)
    const { id } = await request('hold')
    await reaches(id, 'incident')
    expect(await shown('hold', id)).toEqual(everywhere('incident'))
    const incidents = (await get('/admin/incidents', 'linus')).runs
    expect(incidents).toMatchObject([{ id, subject: 'ada', incident: { target: 'crm', code: 'TARGET_FAILED' } }])
    expect((await get(`/requests/${id}`)).ended).toBeUndefined()
    await mailed('On hold', 'A tram', 'is on hold until an administrator has looked at it.')
    application.answerWith(undefined)
    const { fence } = await get(`/admin/runs/${id}`, 'linus')
    await send(`/admin/runs/${id}/retry`, 'linus', 'POST', { fence })
    await reaches(id, 'completed')
    expect(await shown('hold', id)).toEqual(everywhere('completed', false))
    expect((await get('/admin/incidents', 'linus')).runs).toEqual([])
    await mailed('Done', 'A tram', 'is done.')
  }, 300_000)

  test('each outcome was mailed once, and own cancellations were not', () => {
    const labels = ['A car', 'A boat', 'A bike', 'A plane', 'A horse', 'A scooter', 'A tram']
    expect(labels.map(subjectsAbout)).toEqual([
      ['Denied: A car'],
      ['Expired: A boat'],
      [],
      ['Cancelled: A plane'],
      ['Failed: A horse'],
      ['Done: A scooter'],
      ['On hold: A tram', 'Done: A tram'],
    ])
  })
})
