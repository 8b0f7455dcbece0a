import { describe, expect, test } from 'vitest'
import { checkText } from '#testing/modules/check-text.ts'
import { fakeCatalog } from '#testing/modules/fake-catalog.ts'

interface Gateway {
  readonly name?: string
  readonly workflows: string
  readonly maps: string
  readonly reads?: string
}

const application = ({ name = 'people', workflows, maps, reads = '' }: Gateway): string => `
### app-${name}.yaml
apiVersion: gatehouse.dev/v1
kind: Application
metadata: { name: ${name} }
spec:
  urls:
    - hosts: ['*']
      uri: /${name}
      azRules: [{ scope: filter, constraint: (a=b) }]
      filterChain:
        - className: filters.Gateway
          params:
            workflowName: [${workflows}]
            lookupTarget: store
            maps: [${maps}]
            reads: [${reads}]
`

const workflow = (name: string, tasks: string): string => `
### workflow-${name}.yaml
apiVersion: gatehouse.dev/v1
kind: Workflow
metadata: { name: ${name} }
spec:
  tasks:
${tasks.replace(/^/gm, '    ')}
`

const target = (mapping = ''): string => `
### target.yaml
apiVersion: gatehouse.dev/v1
kind: Target
metadata: { name: store }
spec: { className: targets.Memory ${mapping} }
`

const check = (...parts: string[]): string[] => checkText([target(), ...parts].join(''), fakeCatalog)
const provision = (...attributes: string[]): string =>
  `- { taskType: provision, target: store, attributes: [${attributes.join(', ')}] }`

describe('the published mistake: mail is mapped, email is provisioned and read back', () => {
  const lines = check(
    application({ workflows: 'sync', maps: 'username, mail', reads: 'username, email' }),
    workflow('sync', provision('username', 'email')),
  )

  test('is reported at both places, each naming the other side', () => {
    expect(lines).toEqual([
      'app-people.yaml:15:31: warning: spec.urls[0].filterChain[0].params.reads[1]: "email" is read from store, ' +
        'but nothing produces it: workflow-sync.yaml:6:68 provisions it, while ' +
        'the gateway people maps username, mail (app-people.yaml:14:20); did you mean "mail"?',
      'workflow-sync.yaml:6:68: warning: spec.tasks[0].attributes[1]: "email" is provisioned, but nothing produces it: ' +
        'the gateway people maps username, mail (app-people.yaml:14:20); did you mean "mail"?',
    ])
  })
})

describe('valid configurations give no warning', () => {
  const silent: Readonly<Record<string, string[]>> = {
    'what is mapped is provisioned and read': [
      application({ workflows: 'sync', maps: 'mail', reads: 'MAIL' }),
      workflow('sync', provision('Mail')),
    ],
    'all attributes are provisioned': [
      application({ workflows: 'sync', maps: 'mail', reads: 'mail, login' }),
      workflow('sync', '- { taskType: provision, target: store }'),
    ],
    'a task adds what is missing': [
      application({ workflows: 'sync', maps: 'mail', reads: 'mail, kind' }),
      workflow('sync', `- { taskType: set, names: [kind] }\n${provision('mail', 'kind')}`),
    ],
    'a task loads unknown attributes': [
      application({ workflows: 'sync', maps: 'mail', reads: 'phone' }),
      workflow('sync', `- { taskType: load }\n${provision('phone')}\n- { taskType: use, names: [room] }`),
    ],
    'a branch adds it': [
      application({ workflows: 'sync', maps: 'mail' }),
      workflow('sync', `- { taskType: when, name: x, onFailure: [{ taskType: set, names: [b] }] }\n${provision('b')}`),
    ],
    'a called workflow adds it': [
      application({ workflows: 'sync', maps: 'mail' }),
      workflow('sync', `- { taskType: call, name: more }\n${provision('b')}`),
      workflow('more', '- { taskType: set, names: [b] }'),
    ],
    'the login and the pseudo names always exist': [
      application({ workflows: 'sync', maps: 'mail', reads: 'login, groups' }),
      workflow('sync', `- { taskType: use, names: [LOGIN, TREMOLO_USER_ID, groups] }\n${provision('mail')}`),
    ],
    'a strict mapping gives its subtasks what they need': [
      application({ workflows: 'sync', maps: 'mail', reads: 'email' }),
      workflow(
        'sync',
        `- taskType: map\n  strict: true\n  reads: [mail]\n  produces: [email]\n  onSuccess:\n  ${provision('email')}`,
      ),
    ],
    'a mapping that is not strict keeps the others': [
      application({ workflows: 'sync', maps: 'mail', reads: 'email, mail' }),
      workflow('sync', `- taskType: map\n  produces: [email]\n  onSuccess:\n  ${provision('email', 'mail')}`),
    ],
    'another gateway fills the attribute': [
      application({ workflows: 'sync', maps: 'mail', reads: 'phone' }),
      application({ name: 'phones', workflows: 'sync', maps: 'phone' }),
      workflow('sync', provision('mail', 'phone')),
    ],
    'no workflow writes to the target, so others fill it': [
      application({ workflows: 'none', maps: 'mail', reads: 'phone' }),
      workflow('none', '- { taskType: set, names: [x] }'),
    ],
    'a workflow that something else starts may get anything': [
      application({ workflows: 'sync', maps: 'mail', reads: 'phone' }),
      workflow('sync', provision('mail')),
      workflow('import', provision('phone')),
    ],
  }
  for (const [name, parts] of Object.entries(silent)) test(name, () => expect(check(...parts)).toEqual([]))

  test('a filter without a flow starts the same workflow with anything', () => {
    const runner = application({ name: 'other', workflows: 'sync', maps: '' })
      .replace('filters.Gateway', 'filters.Runner')
      .replace(/ +(lookupTarget|maps|reads): .*\n/g, '')
    expect(check(application({ workflows: 'sync', maps: 'a' }), runner, workflow('sync', provision('b')))).toEqual([])
  })

  test('a target whose own mapping makes the attribute', () => {
    const mapped = ', targetAttributes: [{ name: email, source: mail, sourceType: user }]'
    const text = [
      target(mapped),
      application({ workflows: 'sync', maps: 'mail', reads: 'email' }),
      workflow('sync', provision('email')),
    ].join('')
    expect(checkText(text, fakeCatalog)).toEqual([])
  })
})

describe('reported mistakes', () => {
  test('an attribute that a task reads', () => {
    const lines = check(
      application({ workflows: 'sync', maps: 'mail' }),
      workflow('sync', '- { taskType: set, names: [kind] }\n- { taskType: use, names: [phone] }'),
    )
    expect(lines).toEqual([
      'workflow-sync.yaml:7:32: warning: spec.tasks[1].names[0]: "phone" is read, but nothing produces it: ' +
        'the gateway people maps mail (app-people.yaml:14:20), and tasks before it add kind',
    ])
  })

  test('an attribute that is set too late', () => {
    const lines = check(
      application({ workflows: 'sync', maps: 'mail' }),
      workflow('sync', `${provision('kind')}\n- { taskType: set, names: [kind] }`),
    )
    expect(lines).toHaveLength(1)
  })

  test('an attribute that a strict mapping drops', () => {
    const lines = check(
      application({ workflows: 'sync', maps: 'mail, first' }),
      workflow('sync', `- taskType: map\n  strict: true\n  produces: [email]\n  onSuccess:\n  ${provision('first')}`),
    )
    expect(lines).toEqual([
      'workflow-sync.yaml:10:60: warning: spec.tasks[0].onSuccess[0].attributes[0]: "first" is provisioned, ' +
        'but nothing produces it: the strict mapping around it maps email (workflow-sync.yaml:8:18)',
    ])
  })

  test('an attribute that is gone after a mapping', () => {
    const lines = check(
      application({ workflows: 'sync', maps: 'mail' }),
      workflow('sync', `- taskType: map\n  produces: [email]\n  onSuccess: []\n${provision('email')}`),
    )
    expect(lines).toHaveLength(1)
  })

  test('an attribute that is mapped but never provisioned, where it is read back', () => {
    const lines = check(
      application({ workflows: 'sync', maps: 'mail, phone', reads: 'phone' }),
      workflow('sync', provision('mail')),
    )
    expect(lines).toEqual([
      'app-people.yaml:15:21: warning: spec.urls[0].filterChain[0].params.reads[0]: "phone" is read from store, ' +
        'but no workflow provisions it there: they provision mail',
    ])
  })

  test("a target's own mapping that reads a missing attribute", () => {
    const mapped = ', targetAttributes: [{ name: email, source: male, sourceType: user }]'
    const lines = checkText(
      [target(mapped), application({ workflows: 'sync', maps: 'mail' }), workflow('sync', provision('email'))].join(''),
      fakeCatalog,
    )
    expect(lines.join('\n')).toContain('target.yaml:4:71: warning: spec.targetAttributes[0].source: "male" is read')
  })
})

test('workflows that call each other many times end', () => {
  const levels = 40
  const parts = Array.from({ length: levels }, (_, i) =>
    workflow(
      `w${i}`,
      i === levels - 1
        ? provision('x')
        : `- { taskType: call, name: w${i + 1} }\n- { taskType: call, name: w${i + 1} }`,
    ),
  )
  expect(check(application({ workflows: 'w0', maps: 'mail' }), ...parts)).toEqual([])
})
