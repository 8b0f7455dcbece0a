import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { loginIdentity } from '#identity/identity.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { createKeySource } from '#keys/key-source.ts'
import { newMails } from '#mail/mail-outbox.ts'
import { openStorage } from '#server/composition/stores.ts'
import { migratedSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { type MailServer, type MailServerOptions, mailServer, type ReceivedMail } from '#testing/servers/mail-server.ts'
import { developmentLogin, tokenMechanism } from '#testing/stories/story-documents.ts'
import { approvalLinkKey, signApprovalLink } from '#workflows/approvals/approval-link.ts'

const run = promisify(execFile)
const everybody = 'azRules: [{ scope: dn, constraint: o=Tremolo }]'

/** Callers are the users of the directory, once it has them. */
const linkedLogin = developmentLogin.replace(
  'linkToDirectory: "false"',
  'linkToDirectory: "true"\n        lookupFilter: (uid=${sub})',
)

const configuration = (port: number): string => `
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params:
    - { name: host, value: 127.0.0.1 }
    - { name: port, value: "${port}" }
    - { name: security, value: starttls }
    - { name: caFile, value: mail-ca.pem }
    - { name: from, value: Gatehouse <gatehouse@example.com> }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: welcome }
spec:
  tasks:
    - { taskType: provision, target: people, sync: true, attributes: [uid, mail, givenName, preferredLanguage] }
    - taskType: notifyUser
      subject: Welcome to $app$
      msg: "<p>Hello \${givenName}, this is $app$.</p>"
      mailAttrib: mail
      contentType: text/html
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: later }
spec:
  tasks:
    - taskType: customTask
      className: tasks.AsyncCallWorkflow
      params: { workflowName: welcome, uidAttributeName: uid, workflowReason: for $app$ }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ask }
spec:
  tasks:
    - taskType: approval
      label: Payroll for \${TREMOLO_USER_ID}
      emailTemplate: "\${TREMOLO_USER_ID} <asks> for payroll."
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: No payroll for you.
      approvers: [{ scope: filter, constraint: (|(uid=boss)(uid=chefin)) }]
      onSuccess:
        - { taskType: addGroup, name: payroll }
        - { taskType: provision, target: people, sync: false }
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
      filterChain: [{ className: filters.CallWorkflow, params: { allowedWorkflow: [welcome, later, ask], subject: any } }]
    - hosts: ['*']
      uri: /decide
      ${everybody}
      filterChain:
        - { className: filters.ApprovalLink, params: { url: "#[GATEHOUSE_URL]/decide", withoutLogin: "true" } }
    - hosts: ['*']
      uri: /decide-known
      authChain: development
      ${everybody}
      filterChain: [{ className: filters.ApprovalLink, params: { url: "#[GATEHOUSE_URL]/decide-known" } }]
`

interface Scene {
  readonly server: MailServer
  start(database?: string): Promise<GatewayProcess>
}

/** `atEnd` gets what closes it. */
async function scene(
  options: MailServerOptions = {},
  atEnd: (close: () => Promise<void>) => void = onTestFinished,
): Promise<Scene> {
  const server = await mailServer({ security: 'starttls', ...options })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-mail-'))
  atEnd(async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const config = join(folder, 'config')
  mkdirSync(config)
  writeFileSync(join(config, 'all.yaml'), configuration(server.port))
  writeFileSync(join(config, 'mail-ca.pem'), testServerCertificate)
  return {
    server,
    start: async (database) => {
      const shared = database === undefined ? {} : { args: ['--database', database], environment: sharedKey }
      const started = await startGatewayProcess({ config, ...shared })
      atEnd(async () => void (await started.stop()))
      return started
    },
  }
}

/** Gateways that share a database share their key. */
const sharedKey = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 4).toString('base64') }

const idsOf = (mails: readonly ReceivedMail[]): (string | undefined)[] =>
  mails.map(({ headers }) => headers.get('message-id')?.[0])

const bodyOf = (mail: ReceivedMail | undefined, type: string): string =>
  mail?.parts.find((part) => part.type.startsWith(type))?.body ?? ''

describe.skipIf(postgresUrl() === '')('the outbox, with gateways on PostgreSQL', () => {
  async function outbox() {
    const database = await migratedSchema()
    const storage = openStorage({ url: database, clock: systemClock, log: silentLogger })
    onTestFinished(() => storage.close())
    await storage.ready()
    const add = (run: string, ...recipients: string[]) =>
      storage.mails.add(
        newMails(
          run,
          1,
          recipients.map((recipient) => ({ recipient, subject: 'Hello', text: '1 < 2' })),
        ),
      )
    return { database, mails: storage.mails, add }
  }

  test('two gateways send each mail once, in both forms; 451 is retried and 550 is not, as log and metrics show', async () => {
    const { server, start } = await scene({
      reply: (recipient, attempt) => {
        if (recipient.startsWith('gone')) return { at: 'RCPT', code: 550 }
        return recipient.startsWith('busy') && attempt === 1 ? { at: 'DATA', code: 451 } : undefined
      },
    })
    const { database, mails, add } = await outbox()
    const gateways = await Promise.all([start(database), start(database)])
    const people = ['busy@example.com', ...Array.from({ length: 39 }, (_, i) => `person${i}@example.com`)]
    await Promise.all([
      add('run-1', ...people),
      add('run-2', ...people.slice(1)),
      add('run-1', ...people),
      add('run-3', 'gone@example.com'),
    ])
    await until(async () => server.attempts('busy@example.com') > 0, 30_000)
    await until(async () => (await mails.figures()).queued <= 1, 30_000)
    await hasten(database)
    await until(async () => (await mails.figures()).queued === 0, 30_000)
    expect(server.mails).toHaveLength(79)
    expect(new Set(idsOf(server.mails)).size).toBe(79)
    for (const mail of server.mails) {
      expect(mail).toMatchObject({ from: 'gatehouse@example.com', encrypted: true })
      expect(bodyOf(mail, 'text/plain')).toBe('1 < 2')
      expect(bodyOf(mail, 'text/html')).toContain('1 &lt; 2')
    }
    expect({ busy: server.attempts('busy@example.com'), gone: server.attempts('gone@example.com') }).toEqual({
      busy: 2,
      gone: 1,
    })
    expect(await mails.figures()).toMatchObject({ queued: 0, failed: 1 })
    const counted = async (outcome: string): Promise<number> => {
      const texts = await Promise.all(
        gateways.map(async ({ metricsUrl }) => (await fetch(`${metricsUrl}/metrics`)).text()),
      )
      const line = new RegExp(`^gatehouse_mails_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm')
      return texts.reduce((sum, text) => sum + Number(line.exec(text)?.[1] ?? 0), 0)
    }
    expect([await counted('sent'), await counted('retried'), await counted('failed')]).toEqual([79, 1, 1])
    for (const gateway of gateways) await gateway.stop()
    const output = gateways.map((gateway) => gateway.output()).join('')
    expect(output).toContain('given up')
    expect(output).not.toContain('gone@example.com')
  })

  /** Mails that wait for another attempt are due. */
  const hasten = (database: string) => runSql(database, `update mails set due = 0 where state = 'queued'`)

  test('mails that are queued while no gateway runs, or while the mail server is down, are sent later', async () => {
    const { server, start } = await scene()
    const { database, mails, add } = await outbox()
    await add('run-1', 'ada@example.com')
    await server.close()
    await start(database)
    const failedOnce = async () => Number((await runSql(database, 'select attempt from mails'))[0]?.['attempt']) > 0
    await until(failedOnce, 20_000)
    const back = await mailServer({ security: 'starttls', port: server.port })
    onTestFinished(() => back.close())
    await hasten(database)
    await until(async () => (await mails.figures()).queued === 0, 30_000)
    expect(back.mails).toHaveLength(1)
  })

  test('a gateway that dies in the hand-over sends no second mail, unless an operator requests it', async () => {
    let dying: GatewayProcess | undefined
    const { server, start } = await scene({
      beforeAcknowledged: async () => {
        const killed = dying
        dying = undefined
        if (killed === undefined) return
        killed.process.kill('SIGKILL')
        await once(killed.process, 'exit')
      },
    })
    const { database, mails, add } = await outbox()
    dying = await start(database)
    await add('run-1', 'ada@example.com')
    await until(async () => server.mails.length === 1, 20_000)
    await start(database)
    expect((await mails.figures()).queued).toBe(1)
    await runSql(database, 'update mails set lease_until = 0')
    await add('run-2', 'bob@example.com')
    await until(async () => server.mails.length === 2, 20_000)
    expect(server.mails[1]?.to).toEqual(['bob@example.com'])
    await until(async () => (await mails.figures()).queued === 0, 20_000)
    expect(await mails.figures()).toMatchObject({ queued: 0, unknown: 1, failed: 0 })
    const command = async (...args: string[]) =>
      (
        await run(gatehouse, ['mail', ...args, '--database', database], { env: { ...process.env, ...sharedKey } })
      ).stdout.trim()
    const [id = ''] = (await command('list', '--state', 'unknown')).split('\n')[0]?.split(' ').slice(2) ?? []
    expect(await command('retry', id)).toContain('is queued')
    await until(async () => server.mails.length === 3, 20_000)
    const ids = idsOf(server.mails)
    expect(ids[2]).toBe(ids[0])
  })
})

async function call(gateway: GatewayProcess, as: string, name: string, attributes: Record<string, string>, more = {}) {
  const user = {
    attributes: Object.entries(attributes).map(([key, value]) => ({ name: key, values: [value] })),
  }
  const response = await fetch(`${gateway.url}/call`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await gateway.token('--subject', as)}`,
    },
    body: JSON.stringify({ name, uidAttributeName: 'uid', user, reason: 'story', ...more }),
  })
  expect({ status: response.status < 300, body: await response.text() }).toMatchObject({ status: true })
}

const person = (uid: string) => ({ uid, mail: `${uid}@example.com`, givenName: `<i>${uid}</i>` })

describe('one gateway', () => {
  const closers: (() => Promise<void>)[] = []
  let server: MailServer
  let gateway: GatewayProcess
  beforeAll(async () => {
    const { server: started, start } = await scene({}, (close) => closers.unshift(close))
    server = started
    gateway = await start()
  })
  afterAll(async () => {
    for (const close of closers) await close()
  })

  /** The mails of `work`, once this many have arrived. */
  async function mailsOf(count: number, work: () => Promise<void>): Promise<ReceivedMail[]> {
    const before = server.mails.length
    await work()
    await until(async () => server.mails.length >= before + count, 20_000)
    return server.mails.slice(before)
  }

  test('a workflow mails the user and the requester, and user texts stay text', async () => {
    const requestParams = { app: 'R&D <b>', 'UNISON.EXEC.TYPE': 'UNISON.EXEC.SYNC' }
    const welcome = (uid: string) => call(gateway, 'boss', 'welcome', person(uid), { requestParams })
    const mails = [...(await mailsOf(1, () => welcome('boss'))), ...(await mailsOf(2, () => welcome('ada')))]
    expect(mails.flatMap(({ to }) => to).sort()).toEqual(['ada@example.com', 'boss@example.com', 'boss@example.com'])
    const mail = mails.find(({ to }) => to.includes('ada@example.com'))
    expect(bodyOf(mail, 'text/html')).toBe('<p>Hello &lt;i&gt;ada&lt;/i&gt;, this is R&amp;D &lt;b&gt;.</p>')
    expect(bodyOf(mail, 'text/plain')).toBe('Hello <i>ada</i>, this is R&D <b>.')
    expect(new Set(idsOf(mails)).size).toBe(3)
    const later = await mailsOf(1, () => call(gateway, 'eve', 'later', person('eve'), { requestParams }))
    expect(later).toMatchObject([{ to: ['eve@example.com'] }])
    expect(bodyOf(later[0], 'text/plain')).toBe('Hello <i>eve</i>, this is R&D <b>.')
  })

  const sync = { requestParams: { app: 'x', 'UNISON.EXEC.TYPE': 'UNISON.EXEC.SYNC' } }
  const queued = { requestParams: { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.ASYNC' } }

  /** The links of the mail to the boss. */
  async function asked() {
    const mails = await mailsOf(1, () => call(gateway, 'ada', 'ask', person('ada'), queued))
    const [mail] = mails
    expect(mails.map(({ to }) => to)).toEqual([['boss@example.com']])
    expect(bodyOf(mail, 'text/html')).toContain('ada &lt;asks&gt; for payroll.')
    const links = Array.from(bodyOf(mail, 'text/plain').matchAll(/^(http\S+)$/gm), ([link]) => link)
    expect(links).toHaveLength(2)
    const [approve = '', deny = ''] = links
    return { approve, deny }
  }

  const open = async (link: string, token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(link, { headers })
    return { status: response.status, page: await response.text(), headers: response.headers }
  }

  const decide = async (link: string, bearer?: string) => {
    const url = new URL(link)
    const body = new URLSearchParams({ token: url.searchParams.get('token') ?? '', comment: 'by mail' })
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    const response = await fetch(url.origin + url.pathname, { method: 'POST', body, headers })
    return { status: response.status, page: await response.text() }
  }

  test('the links of an approval mail show the request, decide once, and are worthless afterwards', async () => {
    const { approve, deny } = await asked()
    for (let i = 0; i < 3; i++) {
      const opened = await open(approve)
      expect(opened.status).toBe(200)
      expect(opened.page).toContain('Payroll for ada')
      expect(opened.headers.get('content-security-policy')).toContain("default-src 'none'")
    }
    expect(await decide(approve)).toMatchObject({ status: 200, page: expect.stringContaining('was approved') })
    for (const link of [approve, deny]) {
      expect((await decide(link)).status).toBe(410)
      expect((await open(link)).status).toBe(410)
    }
  })

  test('the links of an approval mail are for one approver, and expire', async () => {
    const { approve, deny } = await asked()
    const known = (link: string) => link.replace('/decide?', '/decide-known?')
    const eve = await gateway.token('--subject', 'eve')
    expect((await open(known(approve))).status).toBe(401)
    expect((await open(known(approve), eve)).status).toBe(403)
    expect((await decide(known(approve), eve)).status).toBe(403)
    const token = new URL(approve).searchParams.get('token') ?? ''
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as {
      apr: string
      ver: number
    }
    const keys = createKeySource({ configuration: gateway.dataFolder, data: gateway.dataFolder })
    const signed = async (approver: string, expires: number) => {
      const identity = loginIdentity(approver)
      const link = { approval: claims.apr, version: claims.ver, approver, identity, approve: true }
      const url = new URL(approve)
      url.searchParams.set(
        'token',
        await signApprovalLink(link, new Date(Date.now() + expires), await approvalLinkKey(keys)),
      )
      return url.href
    }
    expect((await decide(await signed('boss', -1000))).status).toBe(410)
    expect([403, 410]).toContain((await decide(await signed('eve', 60_000))).status)
    expect([403, 410]).toContain((await decide(await signed('ada', 60_000))).status)
    expect((await decide(`${approve.slice(0, -4)}AAAA`)).status).toBe(403)
    const boss = await gateway.token('--subject', 'boss')
    const [denial] = await mailsOf(1, async () => {
      const page = expect.stringContaining('was denied')
      expect(await decide(known(deny), boss)).toMatchObject({ status: 200, page })
    })
    expect(denial?.to).toEqual(['ada@example.com'])
  })

  test('the links of an approval mail are in the language of each reader, as is the mail about the decision', async () => {
    const german = (uid: string) => ({ ...person(uid), preferredLanguage: 'de-CH, en;q=0.5' })
    const people = [person('boss'), person('eve'), german('chefin'), german('ada')]
    for (const one of people) await mailsOf(1, () => call(gateway, 'admin', 'welcome', one, sync))
    const denials: ReceivedMail[] = []
    for (const one of [german('ada'), person('eve')]) {
      const mails = await mailsOf(2, () => call(gateway, one.uid, 'ask', one, queued))
      const [english, translated] = ['boss', 'chefin'].map((uid) =>
        mails.find(({ to }) => to.includes(`${uid}@example.com`)),
      )
      expect(english?.headers.get('subject')).toEqual([`Approval needed: Payroll for ${one.uid}`])
      expect(bodyOf(english, 'text/plain')).toMatch(/payroll\.\s+Approve:\s+http\S+\s+Deny:\s/)
      expect(bodyOf(translated, 'text/plain')).toMatch(/payroll\.\s+Genehmigen:\s+http\S+\s+Ablehnen:\s/)
      const deny = bodyOf(translated, 'text/plain').match(/http\S+/g)?.[1] ?? ''
      const decided = async () => expect(await decide(deny)).toMatchObject({ status: 200 })
      denials.push(...(await mailsOf(1, decided)).filter(({ to }) => to.includes(`${one.uid}@example.com`)))
    }
    expect(denials.map((mail) => mail.headers.get('subject'))).toEqual([['Denied'], ['Denied']])
    expect(denials.map((mail) => bodyOf(mail, 'text/plain').trim())).toEqual([
      'No payroll for you.\n\nKommentar zur Entscheidung: by mail',
      'No payroll for you.\n\nComment of the approver: by mail',
    ])
  })
})
