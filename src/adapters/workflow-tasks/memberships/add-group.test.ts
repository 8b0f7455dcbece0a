import { describe, expect, test } from 'vitest'
import { issuesOf, parseTasks, userAfter } from '#testing/workflows/workflow-fixture.ts'

const addGroup = (extra = {}) => ({ taskType: 'addGroup', name: '$groupname$', remove: '$removegroup$', ...extra })

describe('addGroup', () => {
  test('adds or removes as requested, in any letter case of the group', async () => {
    const add = await userAfter([addGroup()], { groups: ['a'], params: { groupname: 'b', removegroup: 'false' } })
    expect(add?.groups).toEqual(['a', 'b'])
    const remove = await userAfter([addGroup()], {
      groups: ['a', 'b'],
      params: { groupname: 'B', removegroup: 'true' },
    })
    expect(remove?.groups).toEqual(['a'])
    const again = await userAfter([addGroup()], { groups: ['a'], params: { groupname: 'A' } })
    expect(again?.groups).toEqual(['a'])
  })

  test('a value that looks like a template is not expanded again', async () => {
    const params = { groupname: '${mail}$secret$', secret: 'leaked' }
    const user = await userAfter([addGroup()], { params, attributes: { mail: ['jj@example.com'] } })
    expect(user?.groups).toEqual(['${mail}$secret$'])
  })

  test('key and attribute are rendered in one pass', async () => {
    const task = addGroup({ name: '${dept}-$groupname$', remove: 'false' })
    const user = await userAfter([task], { params: { groupname: 'x' }, attributes: { dept: ['$groupname$'] } })
    expect(user?.groups).toEqual(['$groupname$-x'])
  })

  test('spaces are part of the name', async () => {
    const user = await userAfter([addGroup()], { params: { groupname: ' b ' } })
    expect(user?.groups).toEqual([' b '])
  })

  test('a dot in a request key is written as an underscore', async () => {
    const user = await userAfter([addGroup({ name: '$a_b$' })], { params: { 'a.b': 'dotted' } })
    expect(user?.groups).toEqual(['dotted'])
  })

  test.each([
    [{}, {}, 'the parameter "team"'],
    [{ team: ' ' }, {}, 'the parameter "team"'],
    [{ team: 'blue' }, {}, 'the attribute "dept"'],
    [{ team: 'blue' }, { dept: [''] }, 'the attribute "dept"'],
  ])('rejects a name with an empty part: parameters %j, attributes %j', async (params, attributes, missing) => {
    const name = 'team-$team$-${dept}'
    for (const remove of ['false', 'true']) {
      await expect(userAfter([addGroup({ name, remove })], { params, attributes })).rejects.toMatchObject({
        code: 'UNPROCESSABLE',
        message: expect.stringContaining('team-$team$-${dept}'),
        publicText: expect.stringContaining(missing),
      })
    }
  })

  test('fails for a flag that is neither true nor false', async () => {
    const params = { groupname: 'g', removegroup: 'maybe' }
    await expect(userAfter([addGroup()], { params })).rejects.toMatchObject({ code: 'WORKFLOW_FAILED' })
  })

  test('accepts a YAML boolean, and reports other values', () => {
    expect(issuesOf([addGroup({ remove: true }), addGroup({ remove: 'yes' }), { taskType: 'addGroup' }])).toEqual([
      '1.remove: "remove" must be true, false or a template',
      '2.name: "name" is required',
    ])
  })

  test('declares the attributes it reads', () => {
    expect(parseTasks([addGroup({ name: '${dept}-${TREMOLO_USER_ID}' })]).tasks[0]?.flow.reads).toEqual([
      { attribute: 'dept', path: [0, 'name'] },
    ])
  })
})
