import { describe, expect, test } from 'vitest'
import { loadText } from '#testing/modules/check-text.ts'
import { fakeCatalog } from '#testing/modules/fake-catalog.ts'

const workflow = `
### workflow.yaml
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: sync }
spec:
  label: Sync
  tasks: |-
    - taskType: customTask
      className: com.tremolosecurity.provisioning.customTasks.PrintUserInfo
      params: { message: '#[OU_HOST] "quoted": yes' }
    - taskType: customTask
      className: com.tremolosecurity.provisioning.customTasks.PrintUserInfo
      params: { message: 1.10 }
    - { taskType: provision, target: store, attributes: [mail] }
`
const target = `
### target.yaml
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: store }
spec: { className: targets.Memory }
`

const load = (text: string) => {
  const { configuration } = loadText(text, fakeCatalog, { environment: { OU_HOST: 'host.example' } })
  if (configuration === undefined) throw new Error('the configuration has errors')
  return configuration
}

const stored = () => {
  const config = load(workflow + target).workflows.get('sync')
  if (config === undefined) throw new Error('no workflow')
  return config
}

describe('a stored definition', () => {
  test('is read unchanged, by a configuration that has another one now, or none', () => {
    const { name, hash, source, tasks, label, parameters } = stored()
    const later = load(target).restoreWorkflow({ name, hash, source })
    if ('problems' in later) throw new Error(later.problems.join('\n'))
    expect(later.config).toMatchObject({ name, hash, source, label, parameters })
    expect(later.config.tasks.map(({ taskType, flow }) => ({ taskType, flow }))).toEqual(
      tasks.map(({ taskType, flow }) => ({ taskType, flow })),
    )
  })

  test('keeps substituted values, and numbers as they were written', () => {
    const { source } = stored()
    expect(source).toContain('"message": 1.10')
    expect(source).not.toContain('#[OU_HOST]')
    expect(source).not.toContain('\n')
  })

  test('that refers to a missing name is reported with its place', () => {
    const { name, hash, source } = stored()
    const restored = load('').restoreWorkflow({ name, hash, source })
    expect(restored).toEqual({ problems: ['spec.tasks.2.target: no target named "store"'] })
  })

  test.each(['', '[]', '{', '{"spec": 1}', '{"spec": {"tasks": [{"taskType": "gone"}]}}', 'a: 1\n---\nb: 2'])(
    'that is damaged is reported: %j',
    (source) => {
      const restored = load(target).restoreWorkflow({ name: 'w', hash: 'h', source })
      expect('problems' in restored && restored.problems.length).toBeGreaterThan(0)
    },
  )
})
