import { expect, test } from 'vitest'
import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import { select } from './select-rows.ts'

const row = (name: string, label: string, group = ''): WorkflowListItem => ({
  uuid: Math.random().toString(),
  name,
  label,
  description: '',
  filterAnnotations: group === '' ? {} : { Group: group },
})

test('a workflow in the list of every org is shown once', () => {
  const all = [row('a', 'Vault'), row('b', 'Laptop'), row('a', 'Vault')]
  expect(select(all, '', new Set()).map(({ name }) => name)).toEqual(['a', 'b'])
})

test("rows are found by their words, by their parameters, or by the gateway's search", () => {
  const all = [row('join', 'Join one', 'owners'), row('join', 'Join two', 'vault'), row('laptop', 'A laptop')]
  expect(select(all, 'vault', new Set()).map(({ label }) => label)).toEqual(['Join two'])
  expect(select(all, 'computer', new Set(['laptop'])).map(({ label }) => label)).toEqual(['A laptop'])
})
