import { describe, expect, test } from 'vitest'
import { issuesOf, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const add = (extra = {}) => ({ taskType: 'addAttribute', ...extra })

describe('addAttribute', () => {
  test('adds a value to the existing ones', async () => {
    const user = await userAfter([add({ name: 'mail', value: '$x$' })], {
      params: { x: '${note}' },
      attributes: { mail: ['a'], note: ['n'] },
    })
    expect(user?.attributes).toEqual({ mail: ['a', '${note}'], note: ['n'] })
  })

  test('removes one value, or with an empty value all of them', async () => {
    const attributes = { mail: ['a', 'b'], note: ['n'] }
    const tasks = [add({ name: 'mail', value: 'a', remove: true }), add({ name: 'note', value: '', remove: 'true' })]
    expect((await userAfter(tasks, { attributes }))?.attributes).toEqual({ mail: ['b'] })
  })

  test('addToRequest changes the request map instead of the user', async () => {
    const tasks = [
      add({ name: 'color', value: 'blue', addToRequest: true }),
      add({ name: 'seen', value: '<$color$>' }),
      add({ name: 'color', remove: true, addToRequest: true }),
      add({ name: 'after', value: '<$color$>' }),
    ]
    expect((await userAfter(tasks))?.attributes).toEqual({ seen: ['<blue>'], after: ['<>'] })
  })

  test.each(['APPROVAL_ID', 'UNISON.EXEC.TYPE', '__proto__', '', 'accessEnds'])(
    'a name from the caller cannot be %j',
    async (name) => {
      const tasks = [add({ name: '$name$', value: 'x', addToRequest: true })]
      await expect(userAfter(tasks, { params: { name } })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    },
  )

  test('numbers and booleans are values; missing fields are reported', () => {
    const tasks = [
      add({ name: 'a', value: 15 }),
      add({ name: 'b', value: true }),
      add({ value: [] }),
      add({ name: 'c' }),
    ]
    const refused = ['WORKFLOW_ID', 'accessEnds'].map((name) => add({ name, value: 'x', addToRequest: true }))
    expect(issuesOf([...tasks, ...refused])).toEqual([
      '2.name: "name" is required',
      '2.value: "value" must be text',
      '2.value: "value" is required',
      '3.value: "value" is required',
      '4.name: "WORKFLOW_ID" is a key of the engine',
      '5.name: "accessEnds" is a key of the engine',
    ])
  })

  test('declares the attributes it reads and produces', () => {
    const flows = parseTasks([
      add({ name: 'full', value: '${first} ${last}' }),
      add({ name: 'key', value: 'x', addToRequest: true }),
      add({ name: 'gone', remove: true }),
      add({ name: '$any$', value: 'x' }),
    ]).tasks.map(({ flow }) => flow)
    expect(flows[0]?.reads.map(({ attribute }) => attribute)).toEqual(['first', 'last'])
    expect(flows.map(({ produces, opaque }) => [produces.map(({ attribute }) => attribute), opaque])).toEqual([
      [['full'], false],
      [[], false],
      [[], false],
      [[], true],
    ])
  })
})
