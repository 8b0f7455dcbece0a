import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { checkText } from '#testing/modules/check-text.ts'
import { customTask, issuesOf, userAfter } from '#testing/workflows/workflow-fixture.ts'

const copy = (params: Record<string, string>) => customTask('com.tremolosecurity.provisioning.tasks.Env2Req', params)
const show = { taskType: 'addAttribute', name: 'seen', value: '<$for_request$|$absent$>' }

test('a value of the environment becomes one of the request, whatever the caller sent', async () => {
  const user = await userAfter([copy({ for_request: 'REGION', absent: 'NONE' }), show], {
    params: { for_request: 'chosen by the caller' },
  })
  expect(user?.attributes).toEqual({ seen: ['<eu-1|>'] })
})

test('secrets, keys of the engine and missing values are reported', () => {
  expect(issuesOf([copy({ a: 'DB_PASSWORD', WORKFLOW_ID: 'REGION', b: 'NONE' }), copy({})])).toEqual([
    expect.stringContaining('0.params.a: "DB_PASSWORD" is, or looks like, a secret'),
    '0.params.WORKFLOW_ID: "WORKFLOW_ID" is a key of the engine',
    '0.params.b: "NONE" is neither in the environment nor in a values document, so "b" is not set',
    expect.stringContaining('1.params: a value to copy is required'),
  ])
})

test('values and secrets of an OpenUnison object are distinguished', () => {
  const text = (name: string) => `
apiVersion: openunison.tremolo.io/v6
kind: OpenUnison
metadata: { name: orchestra }
spec:
  non_secret_data: [{ name: GIT_HOST, value: git.corp.test }]
  secret_data: [gitAccess]
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: w }
spec:
  tasks: |-
    - taskType: customTask
      className: com.tremolosecurity.provisioning.tasks.Env2Req
      params: { for_request: ${name} }
`
  const problems = (name: string) => checkText(text(name), catalog).filter((line) => line.includes(name))
  expect(problems('GIT_HOST')).toEqual([])
  expect(problems('gitAccess').join()).toContain('is, or looks like, a secret')
})
