import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import type { PasswordChanges, ResetOutcome, ResetRequest } from '#features/passwords/service/password-changes.ts'
import type { ServedResetLinks } from '#features/passwords/service/reset-links.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { next, type PreviewContext } from '#sdk/workflow/workflow-task.ts'
import { checkText } from '#testing/modules/check-text.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { runTask } from '#testing/workflows/run-task.ts'
import { customTask, parseTasks } from '#testing/workflows/workflow-fixture.ts'

const task = (mechName = 'PasswordReset') =>
  customTask('com.tremolosecurity.provisioning.customTasks.SetPassword', { mechName })

const served = (application: string): ServedResetLinks => ({
  application,
  links: {
    root: undefined,
    writer: { target: undefined, loginAttribute: 'uid', mailAttribute: 'mail' },
    validMillis: 60_000,
    perHour: 3,
    write: (secret) => ({ subject: 'Set', text: secret }),
  },
})

async function run(outcome: ResetOutcome, resetLinks: readonly ServedResetLinks[], mechName?: string) {
  const requests: ResetRequest[] = []
  const passwords: Pick<PasswordChanges, 'requestReset'> = {
    requestReset: async (request) => {
      requests.push(request)
      return outcome
    },
  }
  const host = { ...fakeModuleHost(), passwords, resetLinks }
  await runTask(task(mechName), { host, requestor: 'boss' })
  return requests
}

test('a link is mailed for the user of the run, in the name of its requester', async () => {
  expect(await run('sent', [served('portal')])).toMatchObject([
    {
      form: 'portal',
      filter: { kind: 'equal', attribute: 'uid', value: 'jjackson' },
      cause: { requestor: 'boss', workflow: { id: 'run-1', name: 'w' } },
      perHour: 3,
    },
  ])
  expect(await run('sent', [served('a'), served('b')], 'b')).toMatchObject([{ form: 'b' }])
})

test('the task fails if no link was mailed', async () => {
  await expect(run('unknown', [served('portal')])).rejects.toThrow('"jjackson" is not exactly one active user')
  await expect(run('too many', [served('portal')])).rejects.toThrow('got 3 links within an hour')
  await expect(run('sent', [served('a'), served('b')])).rejects.toThrow('must be the name of its Application: "a", "b"')
})

test('the preview shows the mail, without a link', async () => {
  const [prepared] = parseTasks([task()]).tasks
  const created = await prepared?.create(Object.assign(fakeModuleHost(), { resetLinks: [served('portal')] }))
  const mails: object[] = []
  const user = { ...userOf('ada', { mail: ['ada@corp.test'] }), keepGroups: false }
  const context = { user, effects: { mail: (mail: object) => void mails.push(mail) } } as unknown as PreviewContext
  expect(await created?.preview?.(context)).toEqual(next)
  expect(mails).toEqual([{ recipient: 'ada@corp.test', subject: 'Set', text: '…' }])
})

test('without filters.Passwords, the workflow is set aside with the reason', () => {
  const workflow = `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: w }
spec:
  tasks: |-
    - taskType: customTask
      className: com.tremolosecurity.provisioning.customTasks.SetPassword
      params: { mechName: PasswordReset }
`
  const passwords = (name: string) => `---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: ${name} }
spec:
  isApp: true
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["*"]
      uri: /${name}
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: filters.Passwords, params: { publicURL: "https://gw.corp.test/password" } }]
`
  const problems = (text: string) => checkText(text, catalog).filter((line) => line.includes('filters.Passwords'))
  const reason = 'params.mechName: its link needs a URL with filters.Passwords'
  expect(problems(workflow).join()).toContain(reason)
  expect(problems(workflow + passwords('a'))).toEqual([])
  expect(problems(workflow + passwords('a') + passwords('b')).join()).toContain(reason)
  expect(problems(workflow + passwords('a') + passwords('PasswordReset'))).toEqual([])
})
