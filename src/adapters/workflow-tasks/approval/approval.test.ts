import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { ApprovalRequest } from '#sdk/workflow/approval-request.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { runTask, type TaskRunOptions } from '#testing/workflows/run-task.ts'
import { issuesOf, parseTasks, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

const rule = (scope: string, constraint: string) => ({ scope, constraint })
const managers = rule('group', 'cn=managers,ou=groups,ou=people,o=Tremolo')

const approval = (more: TaskSpec = {}): TaskSpec => ({
  taskType: 'approval',
  label: 'Access to $namespace$ for ${cn}',
  emailTemplate: 'Decide about $namespace$, ${cn}, $missing$.',
  mailAttr: 'mail',
  failureEmailSubject: 'No to $namespace$',
  failureEmailMsg: 'Because: ${reason}',
  approvers: [managers],
  ...more,
})

async function asked(spec: TaskSpec, options: TaskRunOptions = {}): Promise<ApprovalRequest> {
  const { outcome } = await runTask(spec, options)
  if (outcome.kind !== 'wait' || !('approval' in outcome)) throw new Error('no approval was asked for')
  return outcome.approval
}

describe('parsing', () => {
  test('reports every problem at its position', () => {
    expect(
      issuesOf([
        { taskType: 'approval' },
        approval({
          approvers: [rule('people', 'x'), { scope: 'dn' }, 'x', rule('filter', '(a=b'), { ...managers, extra: 1 }],
          allowSelfApproval: 'perhaps',
          escalationPolicy: {
            escalations: [
              { executeAfterTime: 0, executeAfterUnits: 'fortnight', azRules: [managers] },
              { executeAfterTime: 'x', executeAfterUnits: 'day', azRules: [] },
              { executeAfterTime: 101, executeAfterUnits: 'year', azRules: [managers], validateEscalationClass: 3 },
            ],
            failure: { action: 'panic', azRules: [] },
          },
        }),
        approval({ approvers: [], escalationPolicy: { escalation: [] } }),
        approval({ approvers: managers, escalationPolicy: { escalations: [], failure: { action: 'assign' } } }),
      ]),
    ).toEqual([
      '0.label: "label" is required',
      '0.emailTemplate: "emailTemplate" is required',
      '0.mailAttr: "mailAttr" is required',
      '0.failureEmailSubject: "failureEmailSubject" is required',
      '0.failureEmailMsg: "failureEmailMsg" is required',
      '0.approvers: "approvers" is required',
      '1.allowSelfApproval: "allowSelfApproval" must be "true" or "false", not "perhaps"',
      '1.approvers.0.scope: must be one of dn, filter, group, dynamicGroup, custom',
      '1.approvers.1.constraint: must be text',
      '1.approvers.2: must have scope, constraint',
      '1.approvers.3.constraint: filter: expected ")" at character 5',
      '1.approvers.4.extra: unknown key "extra"',
      '1.escalationPolicy.escalations.0.executeAfterTime: must be a whole number from 1',
      '1.escalationPolicy.escalations.0.executeAfterUnits: must be one of sec, min, hr, hour, day, wk, week, month, year',
      '1.escalationPolicy.escalations.1.executeAfterTime: must be a whole number from 1',
      '1.escalationPolicy.escalations.1.azRules: at least one rule is required: without a rule no one may decide',
      '1.escalationPolicy.escalations.2.executeAfterTime: is more than 100 years',
      '1.escalationPolicy.escalations.2.validateEscalationClass: must be the name of a custom authorization',
      '1.escalationPolicy.failure.action: must be assign or leave',
      '2.approvers: at least one rule is required: without a rule no one may decide',
      '2.escalationPolicy.escalation: unknown key "escalation" (did you mean "escalations"?)',
      '2.escalationPolicy.escalations: must be a list',
      '3.approvers: must be a list',
      '3.escalationPolicy.failure.azRules: must be a list',
    ])
  })

  test('custom authorizations and the attributes of templates are declared', () => {
    const { tasks, referred, issues } = parseTasks([
      approval({
        approvers: [rule('custom', 'manager!${login}')],
        escalationPolicy: {
          escalations: [
            { executeAfterTime: 1, executeAfterUnits: 'day', azRules: [managers], validateEscalationClass: 'late!x' },
          ],
        },
      }),
    ])
    expect(issues.list).toEqual([])
    expect(referred.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'custom authorization manager',
      'custom authorization late',
      'notifier ',
    ])
    expect(tasks[0]?.flow.reads.map(({ attribute }) => attribute)).toEqual(['cn', 'cn'])
    expect(tasks[0]?.flow.produces.map(({ attribute }) => attribute)).toEqual(['reason'])
  })

  test('names the groups of its approvers that have no placeholders', () => {
    const templated = rule('group', 'cn=$namespace$,ou=groups,ou=people,o=Tremolo')
    const { tasks } = parseTasks([approval({ approvers: [managers, templated, rule('filter', '(uid=boss)')] })])
    expect(tasks[0]?.flow.approverGroups).toEqual(['managers'])
  })
})

describe('the first run', () => {
  const options = { attributes: { cn: ['Ann'] }, request: { namespace: 'prod' } }

  test('opens the approval, with expanded texts and rules', async () => {
    const request = await asked(approval(), options)
    expect(request).toMatchObject({
      label: 'Access to prod for Ann',
      allowSelf: false,
      escalations: [],
      mail: { text: 'Decide about prod, Ann, .', address: 'mail' },
    })
    expect(request.approvers.map(({ constraint }) => constraint)).toEqual([managers.constraint])
    expect(request.failure).toBeUndefined()
  })

  test('D8: a request value cannot choose the approvers, nor end a line of the label', async () => {
    const spec = approval({
      approvers: [rule('filter', '(approves=$namespace$)'), rule('dn', 'uid=$namespace$,ou=people,o=Tremolo')],
    })
    const request = await asked(spec, { request: { namespace: '*)(uid=*\r\nBcc: x,ou=admins' } })
    expect(request.approvers).toMatchObject([
      { filter: { kind: 'equal', attribute: 'approves', value: '*)(uid=*\r\nBcc: x,ou=admins' } },
      { dn: { rdns: [[{ value: '*)(uid=*\r\nBcc: x,ou=admins' }], [{ value: 'people' }], [{ value: 'Tremolo' }]] } },
    ])
    expect(request.label).toMatch(/^[^\r\n]*$/)
  })

  test('a rule without its value is omitted', async () => {
    const spec = approval({ approvers: [rule('filter', '(approves=$absent$)'), rule('filter', '(x=${absent})')] })
    expect((await asked(spec)).approvers).toEqual([])
  })

  test.each([
    ['sec', { months: 0, millis: 2_000 }],
    ['min', { months: 0, millis: 120_000 }],
    ['hr', { months: 0, millis: 7_200_000 }],
    ['hour', { months: 0, millis: 7_200_000 }],
    ['day', { months: 0, millis: 172_800_000 }],
    ['wk', { months: 0, millis: 1_209_600_000 }],
    ['week', { months: 0, millis: 1_209_600_000 }],
    ['month', { months: 2, millis: 0 }],
    ['year', { months: 24, millis: 0 }],
  ])('2 %s is a delay', async (executeAfterUnits, after) => {
    const escalations = [{ executeAfterTime: 2, executeAfterUnits, azRules: [managers] }]
    expect((await asked(approval({ escalationPolicy: { escalations } }))).escalations).toMatchObject([{ after }])
  })

  test('escalates when no one decides', async () => {
    const escalations = [{ executeAfterTime: '1', executeAfterUnits: 'day', azRules: [managers] }]
    const assign = { escalations, failure: { action: 'assign', azRules: [rule('dn', 'o=Tremolo')] } }
    expect((await asked(approval({ escalationPolicy: assign }))).failure).toMatchObject([{ scope: 'dn' }])
    const leave = { escalations, failure: { action: 'leave', azRules: [] } }
    expect((await asked(approval({ escalationPolicy: leave }))).failure).toBeUndefined()
    expect((await asked(approval({ allowSelfApproval: 'true' }))).allowSelf).toBe(true)
  })

  test('a condition whose value is missing is false', async () => {
    const escalation = { executeAfterTime: 1, executeAfterUnits: 'day', azRules: [managers] }
    const escalations = [{ ...escalation, validateEscalationClass: 'late!$absent$' }]
    const request = await asked(approval({ escalationPolicy: { escalations } }))
    expect(request.escalations[0]?.onlyIf).toMatchObject({ filter: { kind: 'or', filters: [] } })
  })
})

describe('after the decision', () => {
  const people = [
    {
      dn: Dn.parse('uid=asker,ou=people,o=Tremolo'),
      attributes: Attributes.from({ uid: ['asker'], mail: ['a@x.org'] }),
    },
    {
      dn: Dn.parse('uid=other,ou=people,o=Tremolo'),
      attributes: Attributes.from({ uid: ['other'], mail: ['o@x.org'] }),
    },
  ]
  const signal = (approved: boolean, comment?: string) =>
    ({ kind: 'approval', approval: 'a1', approved, by: 'boss', ...(comment === undefined ? {} : { comment }) }) as const

  test('approval runs onSuccess', async () => {
    const { outcome, request, mails, user } = await runTask(approval(), { signal: signal(true, 'fine') })
    expect(outcome).toEqual({ kind: 'branch', branch: 'onSuccess' })
    expect(Object.fromEntries(request)).toEqual({ APPROVAL_ID: 'a1', APPROVAL_RESULT: true })
    expect(mails).toEqual([])
    expect(user.attributes.has('reason')).toBe(false)
  })

  test('denial runs onFailure and nothing else, with the reason, and a mail to the requester', async () => {
    const { outcome, request, mails, user } = await runTask(approval(), {
      signal: signal(false, 'not ${cn} $namespace$'),
      request: { namespace: 'prod\n' },
      requestor: 'asker',
      host: fakeModuleHost({ entries: people }),
    })
    expect(outcome).toEqual({ kind: 'branch', branch: 'onFailure', end: 'denied' })
    expect(request.get('APPROVAL_RESULT')).toBe(false)
    expect(user.attributes.values('reason')).toEqual(['not ${cn} $namespace$'])
    const text = 'Because: not ${cn} $namespace$'
    expect(mails).toMatchObject([{ recipient: 'a@x.org', subject: 'No to prod', text, sentences: [], isOutcome: true }])
    expect(mails[0]?.reader?.attributes.values('mail')).toEqual(['a@x.org'])
  })

  test('a visitor who registered gets the mail at the submitted address', async () => {
    const { mails } = await runTask(approval(), {
      signal: signal(false, 'not known here'),
      requestor: 'Anonymous',
      attributes: { mail: ['kate@x.org'] },
      host: fakeModuleHost({ entries: people }),
    })
    expect(mails).toMatchObject([{ recipient: 'kate@x.org', text: 'Because: not known here' }])
  })

  test('the mail to a requester names the user who submitted the request', async () => {
    const denied = async (caller: string) => {
      const host = fakeModuleHost({ entries: people })
      const { mails } = await runTask(approval(), { signal: signal(false, 'no'), requestor: 'asker', caller, host })
      return mails.flatMap(({ sentences }) => sentences)
    }
    expect(await denied('svc')).toEqual([{ key: 'mail.submittedBy', values: { name: 'svc' } }])
    expect(await denied('ASKER')).toEqual([])
  })

  test('the mail to a requester has the comment, even if the template does not', async () => {
    const denied = async (comment?: string) => {
      const host = fakeModuleHost({ entries: people })
      const options = { signal: signal(false, comment), requestor: 'asker', host }
      const { mails } = await runTask(approval({ failureEmailMsg: 'No.' }), options)
      return mails.flatMap(({ sentences }) => sentences)
    }
    expect(await denied('Ask <me> later')).toEqual([{ key: 'mail.comment', values: { comment: 'Ask <me> later' } }])
    expect(await denied()).toEqual([])
  })

  test('a channel is named in the request, and must be a Notifier', async () => {
    const request = await asked(approval({ channelNotifier: 'slack' }))
    expect(request.mail).toMatchObject({ channel: 'slack' })
    expect((await asked(approval())).mail).not.toHaveProperty('channel')
    const { referred } = parseTasks([approval({ channelNotifier: 'slack' })])
    expect(referred).toContainEqual({ kind: 'channel notifier', name: 'slack', path: [0, 'channelNotifier'] })
  })

  test('a requester who is the subject gets the mail at the address of the request', async () => {
    const { mails, user } = await runTask(approval(), {
      signal: signal(false),
      attributes: { mail: ['new@x.org'], reason: ['of an earlier step'] },
      requestor: 'JJackson',
    })
    expect(mails.map(({ recipient, text }) => [recipient, text])).toEqual([['new@x.org', 'Because: ']])
    expect(user.attributes.has('reason')).toBe(false)
  })

  test('no mail is sent without a usable address', async () => {
    const { mails } = await runTask(approval(), {
      signal: signal(false),
      requestor: 'jjackson',
      attributes: { mail: ['a@x.org\r\nBcc: b@x.org'] },
      host: fakeModuleHost(),
    })
    expect(mails).toEqual([])
  })
})
