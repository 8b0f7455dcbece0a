import { afterEach, expect, test } from 'vitest'
import type { DynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import javascript from './javascript.ts'

const opened: DynamicWorkflowSource[] = []
const ann = subject('uid=ann,o=x', { team: ['red', 'blue'] })

afterEach(async () => {
  await Promise.all(opened.splice(0).map((source) => source.close?.()))
})

async function open(javaScript: string, params: Record<string, string> = {}): Promise<DynamicWorkflowSource> {
  const issues = noIssues()
  const prepared = javascript.prepare(fakeParams({ javaScript, ...params }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const source = await prepared.create(fakeModuleHost())
  opened.push(source)
  return source
}

const plain = (sets: readonly object[]) => sets.map((set) => ({ ...set }))

test('the function sees the workflow, its parameters and the caller', async () => {
  const source = await open(
    `function generateWorkflows(workflow, params, subject) {
       return subject.attributes.team.map((team) => ({ team, workflow, prefix: params.prefix[0], level: subject.level, none: null }))
     }`,
    { prefix: 'x-' },
  )
  expect(plain(await source.parameterSets(ann))).toEqual([
    { team: 'red', workflow: 'test', prefix: 'x-', level: '20' },
    { team: 'blue', workflow: 'test', prefix: 'x-', level: '20' },
  ])
})

test('a script of OpenUnison is called as OpenUnison calls it', async () => {
  const source = await open(
    `ArrayList = Java.type("java.util.ArrayList")
     HashMap = Java.type("java.util.HashMap")
     function generateWorkflows(wf, cfg, params, authInfo) {
       var rows = new ArrayList()
       var row = new HashMap()
       row.put("who", authInfo.getUserDN())
       row.put("prefix", params.get("prefix").getValues().get(0))
       rows.add(row)
       return rows
     }`,
    { prefix: 'x-' },
  )
  expect(plain(await source.parameterSets(ann))).toEqual([{ who: 'uid=ann,o=x', prefix: 'x-' }])
})

test.each([
  'return {}',
  'return ["x"]',
  'return [{ a: {} }]',
  'return [{ ["__proto__"]: "x" }]',
  'return Array.from({ length: 1001 }, () => ({}))',
  'return',
  'throw new Error("x")',
])('an invalid answer is a failure: %s', async (body) => {
  const source = await open(`function generateWorkflows() { ${body} }`)
  await expect(source.parameterSets(ann)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

test('code without the function is refused', async () => {
  await expect(open('function other() {}')).rejects.toThrow(/no function generateWorkflows/)
})
