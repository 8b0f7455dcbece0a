import { expect, test } from 'vitest'
import type { Target } from '#sdk/target/target.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import clusterMetadata from './cluster-metadata.ts'

async function ask(pathInfo: string, method = 'GET') {
  const filter = await clusterMetadata.prepare(fakeParams({}), noIssues(), fakeParseContext()).create({
    ...fakeModuleHost(),
    targets: {
      names: () => ['k8s', 'people'],
      get: (name) => (name === 'k8s' ? { objects: {} } : {}) as Target,
    },
  })
  const request = fakeRequest({ method })
  const caller = subject('uid=ada,o=Tremolo', {})
  return filter.handle({ request, application: 'app', mount: '/metadata', pathInfo, subject: caller }, async () => {
    throw new Error('it answers itself')
  })
}

test('no cluster is written to Git', async () => {
  const answer = await ask('/k8s')
  expect([answer.status, JSON.parse(String(answer.body))]).toEqual([200, { isGit: false }])
})

test.each(['/people', '/absent', '', '/'])('%j does not name a cluster', async (path) => {
  await expect(ask(path)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('only reading is allowed', async () => {
  await expect(ask('/k8s', 'POST')).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
})
