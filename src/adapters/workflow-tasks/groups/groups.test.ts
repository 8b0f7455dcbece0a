import { describe, expect, test } from 'vitest'
import { MemoryGroups, MemoryNestedGroups } from '#testing/targets/memory-groups.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { customTask, issuesOf, parseTasks, startWorkflows } from '#testing/workflows/workflow-fixture.ts'

async function ran(
  store: MemoryTarget,
  className: string,
  params: Record<string, string | string[]>,
  call: Parameters<Awaited<ReturnType<typeof startWorkflows>>['run']>[1] = {},
) {
  const fixture = await startWorkflows({
    workflows: { w: [customTask(className, { target: 'store', ...params })] },
    targets: { store },
  })
  await fixture.run('w', call)
  return fixture.audit.rows.map(({ kind, action, attribute, value }) => [kind, action, attribute, value].join(' '))
}

const store = () => {
  const target = new MemoryGroups()
  target.addGroup('staff', { description: ['Old'], mail: ['s@x.test'] })
  return target
}

describe('tasks.CreateGroup', () => {
  test("creates the group of the request with the attributes of the workflow's user, once", async () => {
    const target = store()
    const call = { params: { groupname: 'crew' }, attributes: { description: ['D'], externalId: ['7'] } }
    expect(await ran(target, 'tasks.CreateGroup', {}, call)).toEqual(['entry add name crew'])
    expect(await ran(target, 'tasks.CreateGroup', {}, call)).toEqual([])
    expect(target.listed()[1]).toEqual(['crew', { description: ['D'], externalId: ['7'] }, 1])
    const other = ran(target, 'tasks.CreateGroup', {}, { ...call, attributes: {} })
    await expect(other).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('reads names and attributes from templates, values and the user', async () => {
    const target = store()
    const params = {
      name: ['team-$key$', 'all'],
      attributes: ['owner=${manager}', 'mail', 'tag=a', 'tag=b', 'none=', 'absent'],
    }
    const attributes = { manager: ['eve'], mail: ['m1', 'm2'], secret: ['x'] }
    await ran(target, 'tasks.CreateGroup', params, { params: { key: '$x$' }, attributes })
    const values = { owner: ['eve'], mail: ['m1', 'm2'], tag: ['a', 'b'] }
    expect(target.listed().slice(1)).toEqual([
      ['team-$x$', values, 1],
      ['all', values, 1],
    ])
  })

  test('needs a name, and a target that owns groups', async () => {
    await expect(ran(store(), 'tasks.CreateGroup', {})).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
    const bare = ran(new MemoryTarget(), 'tasks.CreateGroup', { name: 'x' })
    await expect(bare).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      publicText: expect.stringContaining('cannot create, change or delete groups'),
    })
  })

  test.each(['CreateGroup', 'AddGroupToStore', 'DeleteGroup', 'UpdateGroup'])(
    'tasks.%s rejects a name with an empty part',
    async (task) => {
      const target = store()
      target.addGroup('team-', {})
      const before = target.listed()
      const attributes = task === 'AddGroupToStore' ? {} : { attributes: ['tag=a'] }
      const given = { name: 'team-$key$', ...(task === 'DeleteGroup' ? {} : attributes) }
      await expect(ran(target, `tasks.${task}`, given)).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
      expect(target.listed()).toEqual(before)
    },
  )

  test('attributes with names of JavaScript members are plain names', async () => {
    const target = store()
    await ran(target, 'tasks.CreateGroup', { name: '__proto__', attributes: ['__proto__=x', 'constructor=y'] })
    expect(target.groups.get('__proto__')?.attributes.values('__proto__')).toEqual(['x'])
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })
})

describe('tasks.AddGroupToStore', () => {
  const className = 'com.tremolosecurity.provisioning.customTasks.AddGroupToStore'

  test("creates groups without attributes of the workflow's user, and leaves existing ones unchanged", async () => {
    const target = store()
    const params = { name: ['staff', 'crew-$DYN_NAME$'], attributes: ['kind=made'] }
    await ran(target, className, params, { params: { DYN_NAME: '1' }, attributes: { mail: ['person@x.test'] } })
    expect(target.listed()).toEqual([
      ['staff', { description: ['Old'], mail: ['s@x.test'] }, 1],
      ['crew-1', { kind: ['made'] }, 1],
    ])
  })

  test("leaves out OpenUnison's statements for databases, and warns of them", async () => {
    const attributes = [
      'unison.group.create.sql=INSERT INTO crews (name,about) VALUES (?,?)',
      'unison.group.create.param.2=Crew of $DYN_NAME$',
      'kind=made',
    ]
    const target = store()
    await ran(target, className, { name: 'crew', attributes }, { params: { DYN_NAME: '1' } })
    expect(target.listed().at(-1)).toEqual(['crew', { kind: ['made'] }, 1])
    expect(issuesOf([customTask(className, { target: 'store', name: 'crew', attributes })])).toEqual([
      '0.params.attributes.0: the statement is not used: the target creates groups with its own, without these parameters',
    ])
  })

  test('requires a name, and attributes with values', () => {
    expect(issuesOf([customTask(className, { target: 'store', attributes: ['mail', '=x'] })])).toEqual([
      '0.params.name: parameter "name" is required',
      '0.params.attributes.0: "mail" is not name=value',
      '0.params.attributes.1: "=x" names no attribute',
    ])
  })
})

describe('tasks.UpdateGroup', () => {
  test('rejects a new name with an empty part', async () => {
    const target = store()
    const given = { name: 'staff', newName: 'team-$key$' }
    await expect(ran(target, 'tasks.UpdateGroup', given)).rejects.toMatchObject({ code: 'UNPROCESSABLE' })
    expect(target.listed().map(([name]) => name)).toEqual(['staff'])
  })

  const rename = { groupname: 'staff', newgroupname: 'crew' }

  test('renames and writes attributes; the second time it does nothing', async () => {
    const target = store()
    const call = { params: rename, attributes: { description: ['New'] }, cleared: ['mail'] }
    expect(await ran(target, 'tasks.UpdateGroup', {}, call)).toEqual([
      'entry replace name crew',
      'attribute replace mail ',
      'attribute replace description New',
    ])
    expect(await ran(target, 'tasks.UpdateGroup', {}, call)).toEqual([])
    expect(target.listed()).toEqual([['crew', { description: ['New'] }, 2]])
  })

  test('keeps the name if none or the same is given', async () => {
    for (const newgroupname of [undefined, 'staff']) {
      const target = store()
      const params = { groupname: 'staff', ...(newgroupname === undefined ? {} : { newgroupname }) }
      await ran(target, 'tasks.UpdateGroup', { attributes: ['description=x'] }, { params })
      expect(target.listed()).toEqual([['staff', { description: ['x'], mail: ['s@x.test'] }, 2]])
    }
  })

  test('honors the version that the caller named, once, and only that of this target', async () => {
    const target = store()
    const stale = { params: { ...rename, groupversion: '0' } }
    await expect(ran(target, 'tasks.UpdateGroup', {}, stale)).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(target.listed()).toMatchObject([['staff', {}, 1]])
    await ran(target, 'tasks.UpdateGroup', { checkVersion: 'false' }, stale)
    expect(target.listed()).toMatchObject([['crew', {}, 2]])
    const update = (value: string) =>
      customTask('tasks.UpdateGroup', {
        target: 'store',
        name: 'crew',
        newName: '',
        attributes: `description=${value}`,
      })
    const { run } = await startWorkflows({ workflows: { w: [update('a'), update('b')] }, targets: { store: target } })
    await run('w', { params: { groupversion: '2' } })
    expect(target.listed()).toMatchObject([['crew', { description: ['b'] }, 4]])
  })

  test('a missing group, or a taken new name, is reported', async () => {
    const target = store()
    target.addGroup('Crew')
    await expect(ran(target, 'tasks.UpdateGroup', {}, { params: rename })).rejects.toMatchObject({ code: 'CONFLICT' })
    const none = ran(target, 'tasks.UpdateGroup', {}, { params: { groupname: 'x', newgroupname: 'y' } })
    await expect(none).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('tasks.DeleteGroup', () => {
  test('deletes once, bound to the version that the caller named', async () => {
    const target = store()
    const call = (groupversion: string) => ({ params: { groupname: 'staff', groupversion } })
    await expect(ran(target, 'tasks.DeleteGroup', {}, call('0'))).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    expect(await ran(target, 'tasks.DeleteGroup', {}, call('1'))).toEqual(['entry delete name staff'])
    expect(await ran(target, 'tasks.DeleteGroup', {}, call('1'))).toEqual([])
  })

  test("by OpenUnison's name for it, several at a time", async () => {
    const target = store()
    target.addGroup('crew')
    const className = 'com.tremolosecurity.provisioning.customTasks.RemoveGroupFromStore'
    await ran(target, className, { name: ['staff', 'crew', 'none'] }, { params: { groupversion: '9' } })
    expect(target.listed()).toEqual([])
  })
})

describe('tasks.NestGroup', () => {
  const nesting = () => {
    const target = new MemoryNestedGroups()
    for (const name of ['all', 'eng']) target.addGroup(name)
    return target
  }
  const params = { groupname: 'all', membergroup: 'eng', removegroup: 'false' }

  test('adds the member group once, and removes it once', async () => {
    const target = nesting()
    expect(await ran(target, 'tasks.NestGroup', {}, { params })).toEqual(['group add members eng'])
    expect(await ran(target, 'tasks.NestGroup', {}, { params })).toEqual([])
    expect([...target.nested]).toEqual(['all/eng'])
    const away = { params: { ...params, removegroup: 'True' } }
    expect(await ran(target, 'tasks.NestGroup', {}, away)).toEqual(['group delete members eng'])
    expect(await ran(target, 'tasks.NestGroup', {}, away)).toEqual([])
  })

  test('expands templates, and uses the groups with the ids of the request', async () => {
    const target = nesting()
    await ran(
      target,
      'tasks.NestGroup',
      { name: 'all', memberGroup: '$key$', remove: 'false' },
      { params: { key: 'eng' } },
    )
    expect([...target.nested]).toEqual(['all/eng'])
    for (const ids of [{ groupid: 'id of other' }, { membergroupid: 'id of other' }]) {
      const other = ran(nesting(), 'tasks.NestGroup', {}, { params: { ...params, ...ids } })
      await expect(other).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    const same = { ...params, groupid: 'id of all', membergroupid: 'id of eng' }
    expect(await ran(nesting(), 'tasks.NestGroup', {}, { params: same })).toHaveLength(1)
  })

  test('a missing member group is reported, and removing it does nothing', async () => {
    const none = { ...params, membergroup: 'none' }
    await expect(ran(nesting(), 'tasks.NestGroup', {}, { params: none })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await ran(nesting(), 'tasks.NestGroup', {}, { params: { ...none, removegroup: 'true' } })).toEqual([])
  })

  test('a target without nested groups is reported', async () => {
    const plain = ran(store(), 'tasks.NestGroup', {}, { params })
    await expect(plain).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  })
})

test('a group that the caller found absent must be new', async () => {
  const target = new MemoryGroups()
  const insists: unknown[] = []
  const { createGroup } = target
  target.createGroup = (name, attributes, request, ...options: unknown[]) => {
    insists.push(...options)
    return createGroup.call(target, name, attributes, request)
  }
  await ran(target, 'tasks.CreateGroup', { name: ['a', 'b'] }, { params: { groupversion: '' } })
  await ran(target, 'tasks.CreateGroup', { name: 'a' }, {})
  expect(insists).toEqual([{ mustBeNew: true }, { mustBeNew: true }, { mustBeNew: false }])
})

test('each refers to its target', () => {
  for (const name of ['CreateGroup', 'UpdateGroup', 'DeleteGroup', 'NestGroup']) {
    expect(issuesOf([customTask(`tasks.${name}`, {})])).toEqual(['0.params.target: parameter "target" is required'])
    const { referred } = parseTasks([customTask(`tasks.${name}`, { target: 't' })])
    expect(referred).toMatchObject([{ kind: 'target', name: 't' }])
  }
})
