import { describe, expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { issuesOf, parseTasks, startWorkflows } from '#testing/workflows/workflow-fixture.ts'

const rule = (targetAttributeName: string, sourceType: string, targetAttributeSource: string) => ({
  targetAttributeName,
  sourceType,
  targetAttributeSource,
})

const provision = (target: string) => ({ taskType: 'provision', target, sync: true })

async function mapped(extra: Record<string, unknown>, map: readonly object[], groups: string[] = []) {
  const inside = new MemoryTarget()
  const after = new MemoryTarget()
  const mapping = {
    taskType: 'mapping',
    map,
    ...extra,
    onSuccess: [...((extra['tasks'] as object[]) ?? []), provision('inside')],
  }
  const { tasks: _, ...spec } = mapping as Record<string, unknown>
  const workflows = { w: [spec, provision('after')] }
  const { run } = await startWorkflows({ workflows, targets: { inside, after } })
  await run('w', { attributes: { mail: ['m'], first: ['$x$'], last: ['"L"'] }, groups, params: { x: 'leak' } })
  return { inside, after }
}

describe('mapping', () => {
  test('is strict by default: the subtasks see the mapped attributes only, on a copy', async () => {
    const map = [
      rule('email', 'user', 'mail'),
      rule('name', 'composite', '${first} ${last}'),
      rule('kind', 'static', '${mail}'),
    ]
    const { inside, after } = await mapped({}, map, ['g'])
    expect(inside.stored('jjackson')).toEqual({
      attributes: { email: ['m'], name: ['$x$ "L"'], kind: ['${mail}'] },
      groups: ['g'],
    })
    expect(after.stored('jjackson')?.attributes).toEqual({ mail: ['m'], first: ['$x$'], last: ['"L"'] })
  })

  test('keeps the others if not strict', async () => {
    const { inside } = await mapped({ strict: 'false' }, [rule('email', 'user', 'mail'), rule('mail', 'static', 'x')])
    expect(inside.stored('jjackson')?.attributes).toEqual({ mail: ['x'], first: ['$x$'], last: ['"L"'], email: ['m'] })
  })

  test.each([
    ['true', { phone: ['1'], work: ['w'] }],
    ['false', { phone: ['1'], tel: ['1'] }],
  ])(
    'an attribute that the request removed is also removed from the mapped ones (strict: %s)',
    async (strict, left) => {
      const inside = new MemoryTarget([{ userID: 'jjackson', attributes: { email: ['w'], phone: ['1'], work: ['w'] } }])
      const map = [rule('email', 'user', 'work'), rule('phone', 'user', 'tel')]
      const spec = { taskType: 'mapping', map, strict, onSuccess: [provision('inside')] }
      const { run } = await startWorkflows({ workflows: { w: [spec] }, targets: { inside } })
      await run('w', { attributes: { tel: ['1'] }, cleared: ['WORK'], keepGroups: true })
      expect(inside.stored('jjackson')?.attributes).toEqual(left)
    },
  )

  test('TREMOLO_USER_ID is the login, as source and as target', async () => {
    const { inside, after } = await mapped({}, [
      rule('TREMOLO_USER_ID', 'user', 'mail'),
      rule('login', 'user', 'TREMOLO_USER_ID'),
    ])
    expect(inside.stored('m')?.attributes).toEqual({ login: ['jjackson'] })
    expect(after.stored('jjackson')).toBeDefined()
  })

  test('changes to groups inside stay inside', async () => {
    const tasks = [{ taskType: 'addGroup', name: 'inner' }]
    const { inside, after } = await mapped({ tasks }, [rule('email', 'user', 'mail')], ['outer'])
    expect(inside.stored('jjackson')?.groups).toEqual(['outer', 'inner'])
    expect(after.stored('jjackson')?.groups).toEqual(['outer'])
  })

  test('reports every wrong rule', () => {
    const map = ['text', rule('a', 'magic', 'x'), { targetAttributeName: 'b', wrong: 1 }]
    expect(
      issuesOf([
        { taskType: 'mapping', map },
        { taskType: 'mapping', strict: 'no' },
      ]),
    ).toEqual([
      '0.map.0: a mapping rule is a map of targetAttributeName, sourceType and targetAttributeSource',
      '0.map.1.sourceType: "sourceType" must be one of user, static, composite, custom, not "magic"',
      '0.map.2.wrong: unknown key "wrong"',
      '0.map.2.sourceType: "sourceType" is required',
      '0.map.2.targetAttributeSource: "targetAttributeSource" is required',
      '1.map: "map" is required',
      '1.strict: "strict" must be "true" or "false", not "no"',
    ])
  })

  test('declares the attributes it reads, produces and drops', () => {
    const map = [rule('email', 'user', 'mail'), rule('TREMOLO_USER_ID', 'user', 'login')]
    const [strict, loose] = parseTasks([
      { taskType: 'mapping', map },
      { taskType: 'mapping', map, strict: false },
    ]).tasks
    expect(strict?.flow.reads.map(({ attribute }) => attribute)).toEqual(['mail', 'login'])
    expect(strict?.flow.produces).toEqual([{ attribute: 'email', path: [0, 'map', 0, 'targetAttributeSource'] }])
    expect(strict?.flow).toMatchObject({ dropsOthers: true, opaque: false })
    expect(loose?.flow.dropsOthers).toBe(false)
  })
})
