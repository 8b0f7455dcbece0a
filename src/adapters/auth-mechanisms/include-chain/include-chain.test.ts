import { expect, test } from 'vitest'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import includeChain from './include-chain.ts'

test('runs the chain it names, and declares it in advance', async () => {
  const context = fakeParseContext()
  const prepared = includeChain.prepare(fakeParams({ chainName: 'other' }), fakeParams({}), noIssues(), context)
  expect(prepared.includes).toEqual(['other'])
  expect(context.references).toEqual([{ kind: 'chain', name: 'other', path: ['params', 'chainName', 0] }])
  const mechanism = await prepared.create(fakeModuleHost())
  const outcome = await mechanism.begin({ request: fakeRequest({}), subject: undefined, root: 'o=Tremolo' })
  expect(outcome).toEqual({ kind: 'include', chain: 'other' })
})

test('needs a chain', () => {
  const issues = noIssues()
  includeChain.prepare(fakeParams({}), fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual(['error params.chainName: parameter "chainName" is required'])
})
