import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { runTask, type TaskRunOptions } from '#testing/workflows/run-task.ts'
import { issuesOf, parseTasks } from '#testing/workflows/workflow-fixture.ts'

const task = (more = {}) => ({
  taskType: 'notifyUser',
  subject: 'Access to $app$',
  msg: 'Hello ${givenName}, you have $app$.',
  mailAttrib: 'mail',
  ...more,
})

const ada = { mail: ['ada@example.com'], givenName: ['Ada'] }
const boss = {
  dn: Dn.parse('uid=boss,ou=people,o=Tremolo'),
  attributes: Attributes.from({ uid: ['boss'], mail: ['boss@example.com'] }),
}
const host = fakeModuleHost({ entries: [boss] })
const run = (more: Record<string, unknown>, options: TaskRunOptions = {}) =>
  runTask(task(more), { attributes: ada, request: { app: 'payroll' }, host, ...options })

describe('recipients', () => {
  test('are the user, with expanded values', async () => {
    const { mails, outcome } = await run({})
    expect(outcome).toEqual({ kind: 'next' })
    expect(mails).toMatchObject([
      { recipient: 'ada@example.com', subject: 'Access to payroll', text: 'Hello Ada, you have payroll.' },
    ])
  })

  test('include the requester, if that is another user', async () => {
    const to = async (options: TaskRunOptions) => (await run({}, options)).mails.map(({ recipient }) => recipient)
    expect(await to({ requestor: 'boss' })).toEqual(['ada@example.com', 'boss@example.com'])
    expect(await to({ requestor: 'JJackson' })).toEqual(['ada@example.com'])
    expect(await to({ requestor: 'nobody' })).toEqual(['ada@example.com'])
    const same = { ...ada, mail: ['Boss@example.com'] }
    expect(await to({ requestor: 'boss', attributes: same })).toEqual(['Boss@example.com'])
  })

  test('are only the user, if the request says so', async () => {
    const requester = async (value: unknown) =>
      (await run({}, { requestor: 'boss', request: { 'unison.sendToSubject': value } })).mails.length > 1
    expect([await requester('true'), await requester(true), await requester('false')]).toEqual([false, false, true])
  })

  test('must exist: the step fails if the user has no valid address', async () => {
    await expect(run({}, { attributes: {} })).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
    for (const mail of ['ada', 'a@b, eve@example.com', 'a@b\r\nBcc: eve@example.com']) {
      await expect(run({}, { attributes: { mail: [mail] } })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
  })
})

describe('an expanded value', () => {
  test('is escaped in HTML, and unchanged in text and subject', async () => {
    const attributes = { ...ada, givenName: ['<img src=x onerror=alert(1)>'] }
    const options = { attributes, request: { app: 'R&D "<b>"' } }
    const msg = '<p>Hello ${givenName}: <a title="$app$">x</a></p>'
    const [html] = (await run({ msg, contentType: 'text/html; charset=utf-8' }, options)).mails
    expect(html?.html).toBe(
      '<p>Hello &lt;img src=x onerror=alert(1)&gt;: <a title="R&amp;D &quot;&lt;b&gt;&quot;">x</a></p>',
    )
    expect(html?.text).toBe('Hello <img src=x onerror=alert(1)>: x')
    expect(html?.subject).toBe('Access to R&D "<b>"')
    const [plain] = (await run({ msg, contentType: 'text/plain' }, options)).mails
    expect(plain?.html).toBeUndefined()
  })

  test('is never expanded again, and ___ is plain text', async () => {
    const attributes = { ...ada, secret: ['s3cret'], givenName: ['___secret} ${secret} $app$'] }
    const request = { app: '${secret} ___secret}', ___x: 'no' }
    const [mail] = (await run({ subject: '$app$', msg: '${givenName} ___secret}' }, { attributes, request })).mails
    expect(mail?.text).toBe('___secret} ${secret} $app$ ___secret}')
    expect(mail?.subject).toBe('${secret} ___secret}')
    expect(JSON.stringify(mail)).not.toContain('s3cret')
  })

  test('cannot add a header', async () => {
    const request = { app: 'x\r\nBcc: eve@example.com' }
    await expect(run({}, { request })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(run({}, { request: { app: 'x\u0000' } })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })
})

describe('the check', () => {
  test('knows the Notifier, the attributes and the content types', () => {
    expect(parseTasks([task()]).referred).toEqual([{ kind: 'notifier', name: '', path: [0] }])
    const named = parseTasks([task({ notifier: 'mail' })])
    expect(named.referred).toEqual([{ kind: 'notifier', name: 'mail', path: [0, 'notifier'] }])
    expect(named.tasks[0]?.flow.reads.map(({ attribute }) => attribute)).toEqual(['mail', 'givenName'])
    expect(issuesOf([task({ contentType: 'application/pdf' })])[0]).toMatch(/^0\.contentType: /)
    expect(issuesOf([{ taskType: 'notifyUser' }])).toEqual([
      '0.subject: "subject" is required',
      '0.msg: "msg" is required',
      '0.mailAttrib: "mailAttrib" is required',
    ])
  })
})

test('a named Notifier sends the mail', async () => {
  expect((await run({ notifier: 'n' })).mails[0]?.notifier).toBe('n')
})
