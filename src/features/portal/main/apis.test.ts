import { expect, test } from 'vitest'
import { callWorkflowApi } from '#features/call-workflow/call-workflow.ts'
import { workflowAdminApi } from '#features/call-workflow/workflow-admin.ts'
import { placeAtMount, placeAtSegment, placeBelow } from '#sdk/api/api-description.ts'
import type { ServedApi } from '#sdk/filter/filter-api.ts'
import { onlyFor, openMain, someone } from '#testing/modules/main-fixture.ts'
import { mainApiFor } from './api-description.ts'

const formats = ['openapi', 'swagger'] as const
const served = (name: string, api: ServedApi['api'], more: Partial<ServedApi> = {}): ServedApi => ({
  name,
  application: `${name}-application`,
  hosts: ['*'],
  mount: `/${name}`,
  rules: [onlyFor('people')],
  credentials: [{ kind: 'bearer' }],
  api,
  ...more,
})
const forUsers = callWorkflowApi.served(placeAtSegment, { formats, users: callWorkflowApi })

const apis: readonly ServedApi[] = [
  served(
    'main',
    mainApiFor({ approvals: true, administrator: true }).served(placeBelow('/main'), {
      formats,
      users: mainApiFor({ approvals: true, administrator: false }),
    }),
    { mount: '/portal', credentials: [{ kind: 'session', cookie: 'portal' }] },
  ),
  served('calls', forUsers, { hosts: ['calls.example.com', 'gw.example.com'], mount: '/in/calls' }),
  served('closed', forUsers, { rules: [onlyFor('others')] }),
  served('no-rules', forUsers, { rules: [], credentials: undefined }),
  served('runs', workflowAdminApi.served(placeAtMount)),
]
const params = { administrators: 'filter;(groups=administrators)' }
const admin = someone('root', ['people', 'administrators'])

test('users know the APIs for users whose rules admit them', async () => {
  const { send } = await openMain({ apis, params })
  expect((await send('GET', '/apis')).body).toEqual({
    apis: [
      {
        name: 'calls',
        title: 'Call-workflow API',
        application: 'calls-application',
        addresses: ['https://gw.example.com/in/calls', 'https://calls.example.com/in/calls'],
        authentication: ['bearer'],
        documents: ['openapi.json', 'swagger.json'],
      },
      {
        name: 'main',
        title: 'Main API',
        application: 'main-application',
        addresses: ['https://gw.example.com/portal/main'],
        authentication: ['session'],
        documents: ['openapi.json', 'swagger.json'],
      },
    ],
  })
})

test('administrators know all of them', async () => {
  const { send } = await openMain({ apis, params })
  const { body } = await send('GET', '/apis', undefined, admin)
  const names = body.apis.map(({ name }: { name: string }) => name)
  expect(names).toEqual(['calls', 'closed', 'no-rules', 'main', 'runs'])
  expect(body.apis[2]).not.toHaveProperty('authentication')
  expect(body.apis[4].documents).toEqual(['openapi.json'])
})

test('a document has the addresses and credentials of the configuration', async () => {
  const { send } = await openMain({ apis, params })
  expect((await send('GET', '/apis/calls/openapi.json')).body).toMatchObject({
    openapi: '3.1.0',
    servers: [{ url: 'https://gw.example.com/in' }, { url: 'https://calls.example.com/in' }],
    paths: { '/calls': { post: {} } },
    security: [{ bearer: [] }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } }, schemas: { StartedRun: {} } },
  })
  expect((await send('GET', '/apis/calls/swagger.json')).body).toMatchObject({ swagger: '2.0', basePath: '/in' })
  expect((await send('GET', '/apis/main/openapi.json')).body.components.securitySchemes).toMatchObject({
    session: { type: 'apiKey', in: 'cookie', name: 'portal' },
  })
  expect((await send('GET', '/apis/no-rules/openapi.json', undefined, admin)).body).not.toHaveProperty('security')
})

test.each([
  'closed/openapi.json',
  'no-rules/openapi.json',
  'runs/openapi.json',
  'nothing/openapi.json',
  'calls/openapi.yaml',
  'calls/constructor',
  '__proto__/openapi.json',
])('%s does not exist for a user', async (path) => {
  const { send } = await openMain({ apis, params })
  await expect(send('GET', `/apis/${path}`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('only formats that the list names are served', async () => {
  const { send } = await openMain({ apis, params })
  await expect(send('GET', '/apis/runs/swagger.json', undefined, admin)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('the Main API describes what the caller can use of it', async () => {
  const paths = async (path: string, who = someone('ann'), more = {}): Promise<string> => {
    const { send } = await openMain({ apis, params: { ...params, ...more } })
    return JSON.stringify((await send('GET', path, undefined, who)).body)
  }
  for (const path of ['/openapi.json', '/swagger.json', '/apis/main/openapi.json']) {
    expect(await paths(path)).not.toMatch(/\/admin\/|AdminRun/)
    expect(await paths(path, admin)).toContain('/main/admin/runs')
  }
  expect(await paths('/openapi.json')).toContain('/main/approvals')
  expect(await paths('/openapi.json', admin, { enableApprovals: 'false' })).not.toMatch(/"\/main\/approvals/)
})

test('without APIs there is an empty list', async () => {
  const { send } = await openMain()
  expect((await send('GET', '/apis')).body).toEqual({ apis: [] })
})
