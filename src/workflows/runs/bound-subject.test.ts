import { describe, expect, test } from 'vitest'
import { prepareMapping } from '#sdk/mapper/mapping.ts'
import { fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { startWorkflows, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

const provision = { taskType: 'provision', target: 'store', sync: true }
const script = (code: string): TaskSpec => ({
  taskType: 'customTask',
  className: 'tasks.JavaScriptTask',
  params: { javaScript: `function doTask(user, request) { ${code}; return true }` },
})
const bound = { attributes: ['EmployeeNumber'] }

/** Runs the task on the user `ann`, who has the number E1, and returns the logins in the target afterwards. */
async function write(task: TaskSpec, call: object = { bound }): Promise<string[]> {
  const store = new MemoryTarget([{ userID: 'E9', attributes: { mail: ['nine@x.test'] }, groups: [] }])
  const source = { attribute: 'TREMOLO_USER_ID', sourceType: 'user', source: 'employeeNumber', path: [] } as const
  const mail = { attribute: 'mail', sourceType: 'user', source: 'mail', path: [] } as const
  const { run, workflows } = await startWorkflows({
    workflows: { w: [task, provision] },
    targets: { store },
    mappings: { store: prepareMapping([source, mail], noIssues(), fakeParseContext()) },
  })
  try {
    await run('w', { userID: 'ann', attributes: { employeeNumber: ['E1'], mail: ['E9'] }, ...call })
  } finally {
    await workflows.close()
    expect(store.stored('E9')?.attributes).toEqual({ mail: ['nine@x.test'] })
  }
  return store.methods().includes('createUser') ? ['E1'].filter((login) => store.stored(login) !== undefined) : []
}

describe('a run that is bound to its subject', () => {
  test.each([
    ['the login', script('user.userID = user.attributes.mail[0]'), 'from "ann" to "E9"'],
    ['an attribute that logins are made of', script('user.attributes.employeeNumber = ["E9"]'), '"EmployeeNumber"'],
    [
      'a further value of one',
      script('user.attributes.EMPLOYEENUMBER = ["E1", "E9"]; delete user.attributes.employeeNumber'),
      '"EmployeeNumber"',
    ],
    [
      'one, from a template',
      { taskType: 'addAttribute', name: 'employeeNumber', value: '${mail}' },
      '"EmployeeNumber"',
    ],
  ])('is refused, with no target called, when a task changes %s', async (_, task, detail) => {
    const failure: unknown = await write(task).catch((error: unknown) => error)
    expect(failure).toMatchObject({
      code: 'ACCESS_DENIED',
      message: expect.stringContaining(detail),
      publicText: expect.stringContaining('another user'),
    })
  })

  test.each([
    ['other attributes', script('user.attributes.mail = ["new@x.test"]')],
    ['the letter case of the login', script('user.userID = "ANN"')],
    ['nothing', script('')],
  ])('continues when a script changes %s', async (_, task) => {
    expect(await write(task)).toEqual(['E1'])
  })

  test('is refused for any new value if logins are made from unknown attributes', async () => {
    const task = script('user.attributes.mail = ["E5"]')
    await expect(write(task, { bound: { attributes: 'any' } })).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
    expect(await write(script('user.attributes.nick = ["ann"]'), { bound: { attributes: 'any' } })).toEqual(['E1'])
  })
})

test('a script may change the login of a run that is not bound', async () => {
  const task = script('user.userID = "zoe"; user.attributes.employeeNumber = ["E1"]')
  expect(await write(task, {})).toEqual(['E1'])
})
