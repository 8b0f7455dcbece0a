import { expect, test } from 'vitest'
import type { MainConfig } from '#features/portal/contract/main.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { changeOf, fieldProblem, fieldsOf } from './profile-form.ts'

const field = (more: Partial<FormAttributeView>): FormAttributeView => ({
  name: 'team',
  displayName: 'Team',
  readOnly: false,
  required: false,
  minChars: 0,
  maxChars: 0,
  unique: false,
  type: 'text',
  values: [],
  show: true,
  ...more,
})

test('the login cannot be changed, and nothing can if editing is off', () => {
  const config = {
    attributeNameList: ['uid', 'team', 'absent', 'hidden'],
    attributes: { uid: field({ name: 'uid' }), team: field({}), hidden: field({ name: 'hidden', show: false }) },
    uidAttributeName: 'uid',
    canEditUser: true,
  } as unknown as MainConfig
  expect(fieldsOf(config).map(({ name, readOnly }) => [name, readOnly])).toEqual([
    ['uid', true],
    ['team', false],
  ])
  expect(fieldsOf({ ...config, canEditUser: false }).every(({ readOnly }) => readOnly)).toBe(true)
})

test('checks the rules that the browser knows', () => {
  expect(fieldProblem(field({ required: true }), ' ')?.key).toBe('field.required')
  expect(fieldProblem(field({ minChars: 3 }), '')).toBe(undefined)
  expect(fieldProblem(field({ minChars: 3 }), 'ab')).toEqual({ key: 'field.tooShort', values: { count: 3 } })
  expect(fieldProblem(field({ maxChars: 2 }), '日本')).toBe(undefined)
  expect(fieldProblem(field({ maxChars: 2 }), 'abc')?.key).toBe('field.tooLong')
  const list = field({ type: 'list', values: [{ name: 'Red', value: 'red', num: 0 }] })
  expect([fieldProblem(list, 'red'), fieldProblem(list, 'Red')?.key]).toEqual([undefined, 'field.notListed'])
})

test('sends only changed fields', () => {
  const fields = [field({}), field({ name: 'uid', readOnly: true }), field({ name: 'room' })]
  expect(changeOf(fields, { team: 'red', room: '1' }, { team: '', room: '1', uid: 'root' })).toEqual({
    team: { name: 'team', value: '' },
  })
})
