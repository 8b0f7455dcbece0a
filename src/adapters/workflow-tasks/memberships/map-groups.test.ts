import { expect, test } from 'vitest'
import { customTask, issuesOf, userAfter } from '#testing/workflows/workflow-fixture.ts'

const map = (...rules: string[]) => customTask('tasks.MapGroups', { map: rules })

test('renames the mapped groups and keeps the others', async () => {
  const task = map('SYS_ADMIN=Admins', 'cn\\=x=a=b')
  const user = await userAfter([task], { groups: ['Users', 'Admins'] })
  expect(user?.groups).toEqual(['Users', 'SYS_ADMIN'])
})

test('two groups with the same new name become one, and a renamed group is not renamed again', async () => {
  expect((await userAfter([map('x=a', 'x=b')], { groups: ['a', 'b'] }))?.groups).toEqual(['x'])
  expect((await userAfter([map('b=a', 'a=b')], { groups: ['a'] }))?.groups).toEqual(['b'])
})

test('a rule that is not target=source is reported', () => {
  expect(issuesOf([map('ok=ok', 'nothing', '=x', 'x=')])).toEqual([
    '0.params.map.1: "nothing" is not target=source',
    '0.params.map.2: "=x" is not target=source',
    '0.params.map.3: "x=" is not target=source',
  ])
})
