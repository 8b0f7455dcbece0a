import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { freshSchema, postgresUrl } from '#testing/databases/postgres.ts'
import { startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { application, peopleInDatabase, registrationUrl } from '#testing/stories/story-documents.ts'

/** Limits that come back so slowly that a slow machine gets no more tries. */
const configuration = `
${peopleInDatabase}
---
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params: { host: 127.0.0.1, port: "1", security: none, from: gatehouse@example.com }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec: { tasks: [{ taskType: provision, target: people, sync: true, attributes: [uid, mail] }] }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: { name: basic }
spec: { className: auth.BasicAuth, uri: /auth/basic }
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: { name: basic }
spec:
  level: 20
  root: o=Tremolo
  compliance: { enabled: true, maxFailedAttempts: 3, maxLockoutTime: 3600000 }
  authMechs: [{ name: basic, required: required, params: { realmName: api, uidAttr: uid } }]
---
${application('api', [
  {
    hosts: ['*'],
    uri: '/api',
    authChain: 'basic',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [{ className: 'filters.UserToJSON' }],
  },
  registrationUrl('/register', {
    attributeNames: ['uid', 'mail'],
    'uid.readOnly': 'false',
    'uid.required': 'true',
    'uid.unique': 'true',
    'mail.required': 'false',
    workflowName: 'join',
    submitsPerMinute: '0',
    submitsPerValuePerHour: '5',
    readsPerMinute: '0',
  }),
  {
    hosts: ['*'],
    uri: '/scim',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.ScimGateway',
        params: {
          mapping: 'scim',
          lookupTarget: 'people',
          workflowName: 'join',
          requestsPerMinute: '1',
          requestBurst: '10',
        },
      },
    ],
  },
  {
    hosts: ['*'],
    uri: '/password',
    azRules: [{ scope: 'dn', constraint: 'o=Tremolo' }],
    filterChain: [
      {
        className: 'filters.Passwords',
        params: { publicURL: '#[GATEHOUSE_URL]/password', passwordTarget: 'people', requestsPerMinute: '1' },
      },
    ],
  },
])}
`

const tries = 24

/** The status of a request on a connection of its own, which any worker may accept. */
const send = (url: string, method: string, headers: Readonly<Record<string, string>>, body = ''): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, agent: false, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    sent.on('error', reject)
    sent.end(body)
  })

describe.skipIf(postgresUrl() === '')('limits on PostgreSQL', () => {
  test.each([1, 4])('are the same with --workers %i', async (workers) => {
    const config = temporaryFolder()
    writeFileSync(join(config, 'gateway.yaml'), configuration)
    const gateway = await startGatewayProcess({
      config,
      args: ['--database', await freshSchema(), ...(workers === 1 ? [] : ['--workers', String(workers)])],
    })
    onTestFinished(async () => void (await gateway.stop()))
    if (workers > 1) {
      await until(async () => {
        const health = (await (await fetch(`${gateway.metricsUrl}/health`)).json()) as { workers: { state: string }[] }
        return health.workers.every(({ state }) => state === 'ready')
      }, 60_000)
    }
    const allowed = async (trial: (i: number) => Promise<number>): Promise<number> => {
      const statuses = await Promise.all(Array.from({ length: tries }, (_, i) => trial(i)))
      expect(statuses.filter((status) => status > 500)).toEqual([])
      return statuses.filter((status) => status !== 429).length
    }
    const json = { 'content-type': 'application/json', 'x-requested-with': 'test' }

    const login = (i: number) => {
      const authorization = `Basic ${Buffer.from(`ada:wrong-${i}`).toString('base64')}`
      return send(`${gateway.url}/api`, 'GET', { authorization })
    }
    const registration = () =>
      send(`${gateway.url}/register/submit`, 'POST', json, JSON.stringify({ attributes: { uid: 'ada' }, reason: 'r' }))
    const reset = () => send(`${gateway.url}/password`, 'POST', json, JSON.stringify({ user: 'ada' }))
    // Another address is not another client.
    const list = (i: number) => send(`${gateway.url}/scim/Users`, 'GET', { 'x-forwarded-for': `10.0.0.${i}` })
    const requests = await allowed(list)
    // On a slow machine one comes back meanwhile.
    expect([10, 11]).toContain(requests)
    expect({
      logins: await allowed(login),
      registrations: await allowed(registration),
      resets: await allowed(reset),
    }).toEqual({ logins: 3, registrations: 5, resets: 1 })
  })
})
