import { expect, test } from 'vitest'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import groupMetadata from './group-metadata.ts'

function prepare(params: ParamValues) {
  const issues = noIssues()
  const sources: object[] = []
  const context = { ...fakeParseContext(), addGroupSource: (source: object) => void sources.push(source) }
  const prepared = groupMetadata.prepare(fakeParams(params), issues, context)
  return { prepared, sources, issues: issueTexts(issues.list), references: context.references }
}

test('names the cluster whose objects are read, and lets requests pass', async () => {
  const { prepared, sources, issues, references } = prepare({
    extIsDN: 'false',
    target: 'k8s',
    namespace: 'openunison',
  })
  expect([issues, sources]).toEqual([[], [{ target: 'k8s', namespace: 'openunison' }]])
  expect(references).toMatchObject([{ kind: 'target', name: 'k8s' }])
  const filter = await prepared.create(fakeModuleHost())
  const exchange = { application: 'app', mount: '/app', pathInfo: '/x', subject: subject('uid=ada,o=Tremolo') }
  const next = async () => ({ status: 201, headers: {}, body: 'next' })
  expect(await filter.handle({ ...exchange, request: fakeRequest({}) }, next)).toMatchObject({ status: 201 })
})

test('without parameters there is no cluster, and one of the two is not enough', () => {
  expect(prepare({})).toMatchObject({ sources: [], issues: [] })
  expect(prepare({ target: 'k8s' }).issues).toEqual([
    'error params.namespace: "namespace" is required where "target" is given',
  ])
  expect(prepare({ namespace: 'x' }).issues).toEqual([
    'error params.target: "target" is required where "namespace" is given',
  ])
})
