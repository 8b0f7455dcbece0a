import { expect, test } from 'vitest'
import { filledLabel, readableTemplate, runLabels } from '#sdk/workflow/workflow-label.ts'

test('a place shows its value as it is, or its name in brackets', () => {
  const parameters = new Map([
    ['group', '$other$'],
    ['k8s.namespace', 'prod'],
  ])
  expect(readableTemplate('Join $group$ in $k8s_namespace$ for ${displayName}', parameters)).toBe(
    'Join $other$ in prod for [displayName]',
  )
  expect(readableTemplate('Costs $5')).toBe('Costs $5')
})

test('only the label of a dynamic workflow has places', () => {
  expect(filledLabel({ label: 'Pay $in$ cash' })).toBe('Pay $in$ cash')
  expect(filledLabel({ label: 'Join $group$', dynamic: {} })).toBe('Join [group]')
})

test('the label of a run also says what it is about, if the workflow has such details', async () => {
  const label = await runLabels([{ id: '1', workflow: 'remove' }], {
    workflowOf: () => ({ label: 'Removal', runDetails: '$name$ ($target$)' }),
    parametersOf: async () =>
      new Map([
        [
          '1',
          new Map([
            ['name', '$target$'],
            ['target', 'people'],
          ]),
        ],
      ]),
  })
  expect(label({ id: '1', workflow: 'remove' })).toBe('Removal: $target$ (people)')
})

test('parameters are read for runs of dynamic workflows alone', async () => {
  const asked: string[] = []
  const label = await runLabels(
    [
      { id: '1', workflow: 'join' },
      { id: '2', workflow: 'plain' },
      { id: '3', workflow: 'gone' },
    ],
    {
      workflowOf: (name) =>
        name === 'gone' ? undefined : { label: `${name} $group$`, dynamic: name === 'join' ? {} : undefined },
      parametersOf: async (ids) => {
        asked.push(...ids)
        return new Map([['1', new Map([['group', 'staff']])]])
      },
    },
  )
  expect([
    label({ id: '1', workflow: 'join' }),
    label({ id: '2', workflow: 'plain' }),
    label({ id: '3', workflow: 'gone' }),
  ]).toEqual(['join staff', 'plain $group$', 'gone'])
  expect(asked).toEqual(['1'])
})
