import { expect, test } from 'vitest'
import { namesIn } from './person-names.tsx'
import { requesterText } from './requester.tsx'

const t = (key: string, values: Readonly<Record<string, string | number>> = {}): string =>
  `<${[key, ...Object.values(values)].join(' ')}>`

test('a requester without a login is described, and every other is named', () => {
  const nameOf = namesIn([{ names: { grace: 'Grace Hopper' } }])
  expect(requesterText({ requestor: 'Anonymous' }, t, nameOf)).toBe('<people.registering>')
  expect(requesterText({ requestor: 'anonymous' }, t, nameOf)).toBe('<people.registering>')
  expect(requesterText({ requestor: 'anonymous2' }, t, nameOf)).toBe('anonymous2')
  expect(requesterText({ requestor: 'grace' }, t, nameOf)).toBe('Grace Hopper')
  expect(requesterText({ requestor: 'grace', caller: 'idp' }, t, nameOf)).toBe('<people.submittedBy Grace Hopper idp>')
})

test('a login follows the name for approvers and administrators, and where two names look the same', () => {
  const answers = [{ names: { ada: 'Ada King', ak: 'ada king' } }, { names: { grace: 'Grace Hopper' } }, {}]
  const nameOf = namesIn(answers)
  expect(['ada', 'ak', 'grace', 'gone', '__proto__'].map((login) => nameOf(login))).toEqual([
    'Ada King (ada)',
    'ada king (ak)',
    'Grace Hopper',
    'gone',
    '__proto__',
  ])
  const lookalikes = namesIn([{ names: { ada: 'Ada King', a2: 'Ada\u00a0 King\u200b', a3: 'Ａda\u202e King' } }])
  for (const login of ['ada', 'a2', 'a3']) expect(lookalikes(login)).toContain(`(${login})`)
  expect(nameOf('new', 'Grace Hopper')).toBe('Grace Hopper (new)')
  expect(nameOf('new', 'Someone New')).toBe('Someone New')
  expect(namesIn(answers, true)('grace')).toBe('Grace Hopper (grace)')
  expect(namesIn(answers, true)('gone')).toBe('gone')
})
