import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type MailServer, mailServer, type ReceivedMail } from '#testing/servers/mail-server.ts'
import { developmentLogin, tokenMechanism } from '#testing/stories/story-documents.ts'

const everybody = 'azRules: [{ scope: dn, constraint: o=Tremolo }]'
const linkedLogin = developmentLogin.replace(
  'linkToDirectory: "false"',
  'linkToDirectory: "true"\n        lookupFilter: (uid=${sub})',
)

const configuration = (mailPort: number): string => `
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: default }
spec:
  className: notifiers.Smtp
  params:
    - { name: host, value: 127.0.0.1 }
    - { name: port, value: "${mailPort}" }
    - { name: security, value: none }
    - { name: from, value: Gatehouse <gatehouse@example.com> }
---
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: slack }
spec:
  className: notifiers.Webhook
  params: [{ name: format, value: slack }]
  secretParams: [{ name: url, secretName: slack, secretKey: webhook }]
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: person }
spec:
  tasks:
    - { taskType: provision, target: people, sync: false, attributes: [uid, mail, active] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ask }
spec:
  label: Payroll
  tasks:
    - taskType: approval
      label: Payroll for \${TREMOLO_USER_ID}
      emailTemplate: "\${TREMOLO_USER_ID} asks for <!channel> *payroll*."
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: No payroll for you.
      approvers: [{ scope: filter, constraint: (|(uid=boss)(uid=chief)) }]
      channelNotifier: slack
      onSuccess:
        - { taskType: addGroup, name: payroll }
        - { taskType: provision, target: people, sync: false, attributes: [uid] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ask-urgently }
spec:
  label: Urgent payroll
  tasks:
    - taskType: approval
      label: Urgent payroll for \${TREMOLO_USER_ID}
      emailTemplate: Decide today.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: No payroll for you.
      approvers: [{ scope: filter, constraint: (uid=boss) }]
      mailRequired: true
---
apiVersion: openunison.tremolo.io/v1
kind: OUJob
metadata: { name: digest }
spec:
  className: jobs.MailDigest
  cronSchedule: { seconds: 0/2, minutes: '*', hours: '*', dayOfMonth: '?', month: '*', dayOfWeek: '*', year: '*' }
  params: {}
---
${tokenMechanism}
---
${linkedLogin}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: all }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /call
      authChain: development
      ${everybody}
      filterChain: [{ className: filters.CallWorkflow, params: { allowedWorkflow: [person, ask, ask-urgently], subject: any } }]
    - hosts: ['*']
      uri: /decide
      authChain: development
      ${everybody}
      filterChain: [{ className: filters.ApprovalLink, params: { url: "#[GATEHOUSE_URL]/decide" } }]
    - hosts: ['*']
      uri: /portal
      authChain: development
      ${everybody}
      filterChain: [{ className: filters.Portal, params: { main: /portal/main, url: "#[GATEHOUSE_URL]/portal" } }]
    - hosts: ['*']
      uri: /portal/main
      authChain: development
      ${everybody}
      filterChain:
        - className: filters.Main
          params:
            displayNameAttribute: uid
            frontPage.title: Welcome
            frontPage.text: Hello
            canEditUser: "false"
            workflowName: person
            uidAttributeName: uid
            showPortalOrgs: "true"
            logoutURL: /logout
            warnMinutesLeft: "5"
            attributeNames: [uid]
            uid.displayName: Login
            uid.readOnly: "true"
            approvalAttributeNames: [uid]
            approvals.uid: Login
            approvalRequestAttributeNames: []
`

interface SlackMessage {
  readonly text: string
  readonly blocks: readonly {
    readonly type: string
    readonly text?: { readonly type: string; readonly text: string }
    readonly elements?: readonly { readonly text: { readonly text: string }; readonly url: string }[]
  }[]
}

/** Keeps what is posted to it. It refuses the first attempt, as a busy server does. */
async function slackChannel() {
  const messages: SlackMessage[] = []
  let attempts = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const isBusy = ++attempts === 1
      if (!isBusy) messages.push(JSON.parse(Buffer.concat(chunks).toString()) as SlackMessage)
      response.writeHead(isBusy ? 503 : 200).end(isBusy ? 'busy' : 'ok')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => new Promise((resolve) => server.close(resolve))
  return { messages, url: `http://127.0.0.1:${port}/services/T1/secret-part`, close }
}

const linkOf = (mail: ReceivedMail | undefined, label: string): string => {
  const text = mail?.parts.find(({ type }) => type.startsWith('text/plain'))?.body ?? ''
  return new RegExp(`^${label}:\\n(\\S+)$`, 'm').exec(text)?.[1] ?? `no link "${label}" in: ${text}`
}

const buttonOf = (message: SlackMessage | undefined, label: string): string =>
  message?.blocks.flatMap(({ elements = [] }) => elements).find(({ text }) => text.text === label)?.url ??
  `no button "${label}" in: ${JSON.stringify(message)}`

describe('a request for payroll', () => {
  let gateway: GatewayProcess
  let mails: MailServer
  let channel: Awaited<ReturnType<typeof slackChannel>>

  beforeAll(async () => {
    mails = await mailServer()
    channel = await slackChannel()
    const config = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
    writeFileSync(join(config, 'all.yaml'), configuration(mails.port))
    mkdirSync(join(config, 'secrets', 'slack'), { recursive: true })
    writeFileSync(join(config, 'secrets', 'slack', 'webhook'), channel.url)
    gateway = await startGatewayProcess({ config })
    for (const uid of ['boss', 'chief', 'ada', 'eve']) await person(uid)
    return async () => {
      await gateway.stop()
      await mails.close()
      await channel.close()
      rmSync(config, { recursive: true, force: true })
    }
  }, 120_000)

  const bearer = async (login: string) => ({ authorization: `Bearer ${await gateway.token('--subject', login)}` })

  async function call(as: string, name: string, attributes: Readonly<Record<string, string>>, type: string) {
    const user = { attributes: Object.entries(attributes).map(([key, value]) => ({ name: key, values: [value] })) }
    const requestParams = { 'UNISON.EXEC.TYPE': `UNISON.EXEC.${type}` }
    const response = await fetch(`${gateway.url}/call`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(await bearer(as)) },
      body: JSON.stringify({ name, uidAttributeName: 'uid', user, reason: 'story', requestParams }),
    })
    const body = await response.text()
    expect({ ok: response.ok, body }).toMatchObject({ ok: true })
    return body
  }

  const person = (uid: string, active = 'true') =>
    call('admin', 'person', { uid, mail: `${uid}@example.com`, active }, 'SYNC')

  /** Ada requests payroll; returns the mail to the boss and the message of the channel. */
  async function ask() {
    const [mailed, posted] = [mails.mails.length, channel.messages.length]
    const { workflowId } = JSON.parse(await call('ada', 'ask', { uid: 'ada' }, 'ASYNC')) as { workflowId: string }
    await until(async () => channel.messages.length > posted, 60_000)
    const toBoss = () => mails.mails.slice(mailed).find(({ to }) => to.includes('boss@example.com'))
    await until(async () => toBoss() !== undefined, 60_000)
    return {
      run: workflowId,
      mail: toBoss(),
      message: channel.messages.at(-1),
      posted: channel.messages.length - posted,
    }
  }

  async function open(link: string, as?: string) {
    const response = await fetch(link, { headers: as === undefined ? {} : await bearer(as) })
    return { status: response.status, page: await response.text() }
  }

  async function decide(link: string, as: string, comment = '') {
    const url = new URL(link)
    const body = new URLSearchParams({ token: url.searchParams.get('token') ?? '', comment })
    const response = await fetch(url.origin + url.pathname, { method: 'POST', body, headers: await bearer(as) })
    return { status: response.status, page: await response.text() }
  }

  async function notifications(as: string) {
    const response = await fetch(`${gateway.url}/portal/main/notifications`, { headers: await bearer(as) })
    expect(response.status).toBe(200)
    return (await response.json()) as {
      notifications: { kind: string; approval?: string; request?: string; state?: string; label?: string }[]
      unread: number
    }
  }

  test('is approved from the channel, once, by an approver who is logged in and active', async () => {
    const { run, mail, message, posted } = await ask()
    expect(posted).toBe(1)
    expect(message?.text).toBe('Approval needed: Payroll for ada')
    const said = message?.blocks.find(({ type }) => type === 'section')?.text
    expect(said).toMatchObject({ type: 'plain_text', text: 'ada asks for &lt;!channel&gt; *payroll*.' })
    const [approve, deny] = [buttonOf(message, 'Approve'), buttonOf(message, 'Deny')]
    const page = buttonOf(message, 'Open in the portal')
    expect(page).toMatch(new RegExp(`^${gateway.url}/portal/approvals/[0-9a-f-]{36}$`))
    expect(linkOf(mail, 'Open in the portal')).toBe(page)
    const approval = page.split('/').at(-1)

    expect((await open(approve)).status).toBe(401)
    for (const stranger of ['eve', 'ada']) {
      expect(await open(approve, stranger)).toMatchObject({ status: 403 })
      expect(await decide(approve, stranger)).toMatchObject({ status: 403 })
    }
    expect((await notifications('chief')).notifications).toMatchObject([{ kind: 'approval', approval }])
    expect((await open(approve, 'chief')).status).toBe(200)
    await person('chief', 'false')
    const refused = await decide(approve, 'chief')
    expect([401, 403]).toContain(refused.status)
    expect(refused.page).not.toContain('was approved')
    expect((await decide(linkOf(mail, 'Approve'), 'eve')).status).toBe(403)

    expect((await notifications('boss')).notifications).toMatchObject([{ kind: 'approval', approval }])
    expect(await open(approve, 'boss')).toMatchObject({ status: 200, page: expect.stringContaining('Payroll for ada') })
    expect(await decide(approve, 'boss')).toMatchObject({ status: 200, page: expect.stringContaining('was approved') })
    for (const link of [approve, deny, linkOf(mail, 'Approve'), linkOf(mail, 'Deny')]) {
      expect(await open(link, 'boss')).toMatchObject({ status: 410, page: expect.stringContaining('Already decided') })
      expect((await decide(link, 'boss')).status).toBe(410)
    }
    await until(async () => (await notifications('ada')).notifications.length === 1, 60_000)
    expect((await notifications('ada')).notifications).toMatchObject([
      { kind: 'request', request: run, state: 'completed', label: 'Payroll' },
    ])
    expect((await notifications('boss')).notifications).toEqual([])
    expect((await notifications('eve')).notifications).toEqual([])
  }, 180_000)

  test('is denied from the mail, and the requester gets the comment and a link to the request', async () => {
    const { run, mail } = await ask()
    const mailed = mails.mails.length
    expect(await decide(linkOf(mail, 'Deny'), 'boss', 'Not this year')).toMatchObject({ status: 200 })
    const toAda = () => mails.mails.slice(mailed).find(({ to }) => to.includes('ada@example.com'))
    await until(async () => toAda() !== undefined, 60_000)
    const text = toAda()?.parts.find(({ type }) => type.startsWith('text/plain'))?.body
    expect(text).toContain('No payroll for you.')
    expect(text).toContain('Comment of the approver: Not this year')
    expect(linkOf(toAda(), 'Open in the portal')).toBe(`${gateway.url}/portal/requests/${run}`)
    const denied = async () =>
      (await notifications('ada')).notifications.some(({ request, state }) => request === run && state === 'denied')
    await until(denied, 60_000)
  }, 180_000)

  async function main(as: string, method: string, path: string, body: object) {
    const response = await fetch(`${gateway.url}/portal/main${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(await bearer(as)) },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    expect({ ok: response.ok, text }).toMatchObject({ ok: true })
    return text
  }

  /** The texts of the mails to a user since then, in order. */
  const mailed = (uid: string, since: number): readonly string[] =>
    mails.mails
      .slice(since)
      .filter(({ to }) => to.includes(`${uid}@example.com`))
      .map(({ parts }) => parts.find(({ type }) => type.startsWith('text/plain'))?.body ?? '')

  const arrived = (uid: string, since: number, text: string) =>
    until(async () => mailed(uid, since).some((mail) => mail.includes(text)), 60_000)

  test('reaches users as they chose: in one digest that repeats nothing, or in the inbox alone', async () => {
    const since = mails.mails.length
    await main('boss', 'PUT', '/notifications/settings', {
      mails: { approval: 'digest', question: 'digest' },
      language: 'de',
    })
    await main('ada', 'PUT', '/notifications/settings', { mails: { request: 'digest', question: 'never' } })
    const posted = channel.messages.length
    const { workflowId: run } = JSON.parse(await call('ada', 'ask', { uid: 'ada' }, 'ASYNC')) as { workflowId: string }
    await until(async () => channel.messages.length > posted, 60_000)
    const approval = buttonOf(channel.messages.at(-1), 'Open in the portal').split('/').at(-1) ?? ''
    await arrived('boss', since, `${gateway.url}/portal/approvals/${approval}`)
    const [first] = mailed('boss', since)
    expect(mailed('boss', since)).toHaveLength(1)
    expect(first).toContain('Wartet auf Ihre Entscheidung')
    expect(first).toContain(`${gateway.url}/portal/notifications/settings`)

    await main('boss', 'POST', `/approvals/${approval}/questions`, { text: 'Which month?' })
    const asked = await notifications('ada')
    expect(asked.notifications[0]).toMatchObject({
      kind: 'question',
      request: run,
      label: 'Payroll',
      displayName: 'boss',
    })
    await main('ada', 'POST', `/requests/${run}/answers`, { text: 'March' })
    const kindsOf = async (uid: string) => (await notifications(uid)).notifications.map(({ kind }) => kind)
    expect(await kindsOf('ada')).not.toContain('question')
    expect(await kindsOf('boss')).toEqual(['answer', 'approval'])
    await arrived('boss', since, 'ada hat geantwortet zu: Payroll for ada')

    await main('boss', 'PUT', `/approvals/${approval}`, { approved: false, reason: 'Not in March' })
    await arrived('ada', since, 'Payroll for ada: denied. Comment: Not in March')
    expect(mailed('ada', since)).toHaveLength(1)
    expect(mailed('ada', since)[0]).toContain(`${gateway.url}/portal/requests/${run}`)

    // A mail that the workflow requires comes at once, and another digest has only what is new.
    await call('ada', 'ask-urgently', { uid: 'ada' }, 'ASYNC')
    await arrived('boss', since, 'Decide today.')
    await call('ada', 'ask', { uid: 'ada' }, 'ASYNC')
    const payrolls = () => mailed('boss', since).filter((text) => text.includes('- Payroll for ada ('))
    await until(async () => payrolls().length === 2, 60_000)
    const digests = mailed('boss', since).filter((text) => text.includes('Sie erhalten diese Übersicht'))
    expect(digests.map((text) => text.match(/^- /gm)?.length)).toEqual([1, 1, 1])
    expect(digests.filter((text) => text.includes(approval))).toHaveLength(2)
    expect(digests.some((text) => text.includes('Urgent'))).toBe(false)
    expect(mailed('ada', since)).toHaveLength(1)
  }, 180_000)

  test('opens the page of a link in the language of its reader', async () => {
    const posted = channel.messages.length
    await call('ada', 'ask', { uid: 'ada' }, 'ASYNC')
    await until(async () => channel.messages.length > posted, 60_000)
    const link = buttonOf(channel.messages.at(-1), 'Approve')
    const headers = { ...(await bearer('boss')), 'accept-language': 'fr' }
    const page = await (await fetch(link, { headers })).text()
    expect(page).toContain('<html lang="fr"')
    expect(page).toContain('Approuver cette demande ?')
  })

  test('leaves neither the address of the channel nor signed links in the log', async () => {
    expect(gateway.output()).not.toContain('secret-part')
    expect(gateway.output()).not.toContain('token=')
  })
})
