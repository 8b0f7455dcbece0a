import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connectTo, onEachDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import { runOn } from '#testing/databases/sql-schema.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { developmentLogin, tokenMechanism } from '#testing/stories/story-documents.ts'

const everybody = 'azRules: [{ scope: dn, constraint: o=Tremolo }]'
const linkedLogin = developmentLogin.replace(
  'linkToDirectory: "false"',
  'linkToDirectory: "true"\n        lookupFilter: (uid=${sub})',
)

/** Every reader may decide every request, and digests are due every two seconds. */
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
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: {} }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: person }
spec:
  tasks:
    - { taskType: provision, target: people, sync: false, attributes: [uid, mail] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ask }
spec:
  tasks:
    - taskType: approval
      label: Payroll for \${TREMOLO_USER_ID}
      emailTemplate: Decide.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: Denied
      approvers: [{ scope: filter, constraint: (uid=reader*) }]
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
      filterChain: [{ className: filters.CallWorkflow, params: { allowedWorkflow: [person, ask], subject: any } }]
    - hosts: ['*']
      uri: /portal
      authChain: development
      ${everybody}
      filterChain: [{ className: filters.Portal, params: { main: /portal/main, url: https://gate.example.com/portal } }]
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

const readers = Array.from({ length: 4 }, (_, i) => `reader${i}`)
const rounds = 2
const requests = 6

onEachDatabase('digests', (freshUrl) => {
  test('report every approval to every reader once, although gateways are killed while they write them', {
    timeout: 480_000,
  }, async () => {
    const database = await freshUrl()
    const mailPort = await freePort()
    const config = join(temporaryFolder(), 'config')
    mkdirSync(config)
    writeFileSync(join(config, 'all.yaml'), configuration(mailPort))
    const dataFolder = temporaryFolder()
    const args = ['--database', database, '--workflow-lease-seconds', '5']
    const gateways: GatewayProcess[] = []
    const start = async (index: number, port?: number) => {
      const started = await startGatewayProcess({ config, dataFolder, args, ...(port && { port }) })
      gateways[index] = started
      onTestFinished(async () => void (await started.stop()))
      return started
    }
    const first = await start(0)
    // A SQLite file belongs to one process.
    if (database.startsWith('postgres')) await start(1)

    const tokens = new Map<string, string>()
    const send = async (as: string, method: string, path: string, body?: object): Promise<string> => {
      const token = tokens.get(as) ?? (await first.token('--subject', as))
      tokens.set(as, token)
      const response = await fetch(first.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      expect({ ok: response.ok, text }).toMatchObject({ ok: true })
      return text
    }
    const call = (name: string, uid: string, type: string) =>
      send('admin', 'POST', '/call', {
        name,
        uidAttributeName: 'uid',
        user: {
          attributes: Object.entries({ uid, mail: `${uid}@example.com` }).map(([key, value]) => ({
            name: key,
            values: [value],
          })),
        },
        reason: 'story',
        requestParams: { 'UNISON.EXEC.TYPE': `UNISON.EXEC.${type}` },
      })
    for (const uid of readers) {
      await call('person', uid, 'SYNC')
      await send(uid, 'PUT', '/portal/main/notifications/settings', { mails: { approval: 'digest' } })
    }

    // No mail server listens, so that every digest stays in the outbox.
    const client = connectTo(database)
    const outbox = () =>
      client.query<{ recipient: string; body: string }>({
        sql: 'select recipient, body from mails',
        params: [],
        name: undefined,
      })
    for (let round = 0; round < rounds; round++) {
      const before = (await outbox()).length
      for (let i = 0; i < requests; i++) await call('ask', `user${round}-${i}`, 'ASYNC')
      await until(async () => (await outbox()).length > before, 60_000)
      const killed = round % gateways.length
      const { process: child, url } = gateways[killed] ?? first
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      // Its leases expire: another process may take over what it held.
      for (const table of ['job_runs', 'runs']) {
        await runOn(database, `update ${table} set lease_until = 0 where worker like '%:${child.pid}:%'`)
      }
      await start(killed, Number(new URL(url).port))
    }

    const reported = async (uid: string): Promise<readonly string[]> =>
      (await outbox())
        .filter(({ recipient }) => recipient === `${uid}@example.com`)
        .flatMap(({ body }) => [...body.matchAll(/portal\/approvals\/([0-9a-f-]{36})/g)].map(([, id = '']) => id))
        .sort()
    const openOnes = async (): Promise<readonly string[]> => {
      const { approvals } = JSON.parse(await send('reader0', 'GET', '/portal/main/approvals')) as {
        approvals: { approval: string }[]
      }
      return approvals.map(({ approval }) => approval).sort()
    }
    await until(async () => (await openOnes()).length === rounds * requests, 60_000)
    const expected = await openOnes()
    for (const uid of readers) await until(async () => (await reported(uid)).length >= expected.length, 60_000)
    // Later digests repeat nothing: one of another request has that request alone.
    const before = (await outbox()).length
    await call('ask', 'last', 'ASYNC')
    await until(async () => (await outbox()).length === before + readers.length, 60_000)
    const all = await openOnes()
    expect(all).toHaveLength(expected.length + 1)
    for (const uid of readers) expect(await reported(uid)).toEqual(all)
  })
})
