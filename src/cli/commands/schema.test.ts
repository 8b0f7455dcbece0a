import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { schemaCommand } from './schema.ts'

async function schema(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await schemaCommand(args, { stdout: (line) => out.push(line), stderr: (line) => err.push(line) })
  return { code, text: out.join('\n'), err }
}

const workflow = (taskType: string): object => ({
  apiVersion: 'gatehouse.dev/v1',
  kind: 'Workflow',
  metadata: { name: 'w' },
  spec: {
    tasks: [{ taskType: 'ifAttrExists', name: 'mail', onSuccess: [{ taskType, target: 'people', sync: true }] }],
  },
})

test.each([[[]], [['--kind', 'Workflow']]])('%j: a schema that validates objects', async (args) => {
  const { code, text } = await schema(...args)
  expect(code).toBe(0)
  const validate = new Ajv({ strict: false }).compile(JSON.parse(text))
  expect(validate(workflow('provision'))).toBe(true)
  expect(validate(workflow('provison'))).toBe(false)
})

test('of one kind: nothing of the others', async () => {
  const { text } = await schema('--kind', 'Workflow')
  expect(Object.keys(JSON.parse(text).definitions).sort()).toEqual(['Workflow', 'Workflow.task', 'parameter'])
})

test('an unknown kind is wrong usage, with a suggestion', async () => {
  const { code, err } = await schema('--kind', 'Workflw')
  expect(code).toBe(2)
  expect(err[0]).toContain('unknown kind "Workflw" (did you mean "Workflow"?)')
})
