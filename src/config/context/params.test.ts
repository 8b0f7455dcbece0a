import { describe, expect, test } from 'vitest'
import { Issues } from '#kernel/issues.ts'
import { ConfigDocument } from './config-document.ts'
import { readYaml } from './locate.ts'
import { readParams } from './params.ts'

function read(yaml: string) {
  const [located] = readYaml(yaml).documents
  if (located === undefined) throw new Error('no document')
  const document = new ConfigDocument('x.yaml', located)
  const issues = new Issues(document)
  const value = located.toValue({ text: (text) => text, report: () => {} }) as { params: unknown }
  return { params: readParams(value.params, ['params'], issues, document), issues }
}

describe('a map', () => {
  const { params, issues } = read('params:\n  one: a\n  many: [a, 2, true]\n  version: 1.10\n  none:\n  empty: ""\n')

  test('has texts, lists and scalars as they were written', () => {
    expect([...params.names()]).toEqual(['one', 'many', 'version', 'none', 'empty'])
    expect(params.values('many')).toEqual(['a', '2', 'true'])
    expect(params.values('version')).toEqual(['1.10'])
    expect(params.values('none')).toEqual([])
    expect(params.values('absent')).toEqual([])
  })

  test('has a warning for a parameter without a value, such as an unquoted color', () => {
    const warning = '"none" has no value; put one that begins with # in quotes'
    expect(issues.list).toMatchObject([{ level: 'warning', message: warning }])
    const { issues: others } = read('params:\n  - { name: a, value: x }\n  - name: color\n    value: #0b5fff\n')
    expect(others.list).toMatchObject([{ message: expect.stringContaining('"color" has no value') }])
  })

  test('knows the position of each value', () => {
    expect(params.pathOf('many', 1)).toEqual(['params', 'many', 1])
    expect(params.pathOf('one', 0)).toEqual(['params', 'one'])
    expect(params.pathOf('absent')).toEqual(['params', 'absent'])
  })
})

describe('a list', () => {
  const { params } = read(
    'params:\n  - { name: a, value: 1 }\n  - { name: b, value: x }\n  - { name: a, value: "2" }\n',
  )

  test('joins the values of a repeated name', () => {
    expect(params.values('a')).toEqual(['1', '2'])
    expect(params.pathOf('a', 1)).toEqual(['params', 2, 'value'])
  })
})

test('anything else is reported', () => {
  expect(read('params: text\n').issues.list).toMatchObject([{ message: 'expected a map or a list, found text' }])
  expect(read('params: { a: { b: c } }\n').issues.ok).toBe(false)
})
