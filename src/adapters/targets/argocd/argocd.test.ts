import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { customTask, startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import argoCd from './argocd.ts'

interface Received {
  readonly call: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

/** The part of Argo CD's API that lists and creates repositories, and the target for it. */
async function argo({ refuse = 0 } = {}) {
  const received: Received[] = []
  const repositories = new Map<string, Record<string, string>>()
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://argo')
    const sent = await text(request)
    const body = sent === '' ? undefined : (JSON.parse(sent) as Record<string, string>)
    received.push({ call: `${request.method} ${url.pathname}${url.search}`, headers: request.headers, body })
    if (refuse !== 0) return response.writeHead(refuse).end('{}')
    if (body !== undefined) repositories.set(body['repo'] ?? '', body)
    const items = [...repositories.values()].map(({ sshPrivateKey: _, ...shown }) => shown)
    const wanted = items.filter(({ repo }) => repo === (url.searchParams.get('repo') ?? repo))
    return response.writeHead(200).end(JSON.stringify({ items: wanted.length === 0 ? null : wanted }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const params = fakeParams({ url: `http://127.0.0.1:${port}/argo/`, token: 'hush' })
  const target = await argoCd.prepare(params, noIssues(), fakeParseContext()).create(fakeModuleHost())
  onTestFinished(async () => {
    await target.close?.()
    server.closeAllConnections()
    server.close()
  })
  return { received, repositories, target }
}

const task = customTask('com.tremolosecurity.argocd.tasks.CreateGitRepository', {
  type: 'git',
  name: '$nameSpace$-build',
  repoUrl: '$gitSshInternalURL$',
  sshPrivateKey: '$gitPrivateKey$',
  target: 'argocd',
})
const given = { nameSpace: 'blue', gitSshInternalURL: 'git@git.corp.test:blue/a b?c=d', gitPrivateKey: 'k1' }
const url = 'git@git.corp.test:blue/build.git?x=1&y#z'

test('a repository is registered by the API, and registered again with a new key', async () => {
  const { received, repositories, target } = await argo()
  const { run, audit } = await startWorkflows({ workflows: { w: [task] }, targets: { argocd: target } })
  await run('w', { params: { ...given, gitSshInternalURL: url } })
  await run('w', { params: { ...given, gitSshInternalURL: url, gitPrivateKey: 'k2' } })
  expect(repositories.get(url)).toEqual({ type: 'git', name: 'blue-build', repo: url, sshPrivateKey: 'k2' })
  expect(received.map(({ call }) => call)).toEqual([
    `GET /argo/api/v1/repositories?${new URLSearchParams({ repo: url })}`,
    'POST /argo/api/v1/repositories?upsert=true',
    `GET /argo/api/v1/repositories?${new URLSearchParams({ repo: url })}`,
    'POST /argo/api/v1/repositories?upsert=true',
  ])
  expect(received.every(({ headers }) => headers.authorization === 'Bearer hush')).toBe(true)
  expect(audit.rows.map(({ action, attribute, value }) => [action, attribute, value])).toEqual([
    ['add', 'argocd-repository', url],
    ['replace', 'argocd-repository', url],
  ])
})

test('an address with spaces is refused before anything is sent, and a refusal fails the run', async () => {
  const { received, target } = await argo({ refuse: 403 })
  const { run, audit } = await startWorkflows({ workflows: { w: [task] }, targets: { argocd: target } })
  await expect(run('w', { params: given })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  expect(received).toEqual([])
  await expect(run('w', { params: { ...given, gitSshInternalURL: url } })).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    message: expect.not.stringContaining('git@'),
  })
  expect(audit.rows).toEqual([])
})

test.each([
  'https://oauth2:hunter2@git.corp.test/blue.git',
  'HTTPS://ghp-hunter2@git.corp.test/blue.git',
  'ssh://git:hunter2@git.corp.test/blue.git',
])('an address with a credential is refused, and shown nowhere: %s', async (address) => {
  const { received, target } = await argo()
  const { run, audit } = await startWorkflows({ workflows: { w: [task] }, targets: { argocd: target } })
  const refused = await run('w', { params: { ...given, gitSshInternalURL: address } }).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'BAD_REQUEST', message: expect.not.stringContaining('hunter2') })
  expect([received, audit.rows]).toEqual([[], []])
})

test('parameters are checked', () => {
  const issues = noIssues()
  argoCd.prepare(fakeParams({ url: 'http://argocd.corp.test' }), issues, fakeParseContext())
  expect(issueTexts(issues.list).join()).toMatch(/use https.*"token" is required/)
})
