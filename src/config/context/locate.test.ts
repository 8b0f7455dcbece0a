import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type LocatedYaml, readYaml } from './locate.ts'

function one(text: string): LocatedYaml {
  const [document] = readYaml(text).documents
  if (document === undefined) throw new Error('no document')
  return document
}

const plain = { text: (value: string) => value, report: () => {} }

describe('positions', () => {
  const document = one('a: 1\nlist:\n  - x\n  - { y: &n { z: 2 } }\nalias: *n\n')

  test.each([
    [['a'], 1, 1],
    [['list'], 2, 1],
    [['list', 0], 3, 5],
    [['list', 1, 'y'], 4, 7],
    [['list', 1, 'y', 'z'], 4, 15],
    [['list', 1, 'absent', 'deeper'], 4, 5],
    [['nothing'], 1, 1],
    [['alias', 'z'], 4, 15],
  ])('%j is at %i:%i', (path, line, column) => {
    expect(document.position(path)).toEqual({ line, column })
  })
})

describe('a text that is YAML itself', () => {
  test.each([
    ['a literal block', 'spec:\n  tasks: |-\n\n    - a: 1\n      b:\n        - x\n', { line: 6, column: 11 }],
    [
      'with an indentation of its own',
      'spec:\n  tasks: |2\n     - a: 1\n       b:\n         - x\n',
      { line: 5, column: 12 },
    ],
    [
      'with Windows line ends',
      'spec:\r\n  tasks: |\r\n    - a: 1\r\n      b:\r\n        - x\r\n',
      { line: 5, column: 11 },
    ],
    ['in a later document', 'q: 1\n---\nspec:\n  tasks: |-\n    - b: [x]\n', { line: 5, column: 11 }],
    ['in quotes, only the text itself', 'spec:\n  tasks: "- b:\\n  - x"\n', { line: 2, column: 10 }],
  ])('%s', (_name, text, position) => {
    const document = readYaml(text).documents.at(-1)
    document?.embed(['spec', 'tasks'])
    expect(document?.problems).toEqual([])
    expect(document?.position(['spec', 'tasks', 0, 'b', 0])).toEqual(position)
    expect(document?.toValue(plain)).toMatchObject({ spec: { tasks: [{ b: ['x'] }] } })
    expect(document?.scalarText(['spec', 'tasks', 0, 'b', 0])).toBe('x')
  })

  test('its syntax errors have positions in the outer text', () => {
    const document = one('tasks: |\n  - a: 1\n  - b: [\n  - c\n')
    document.embed(['tasks'])
    expect(document.problems[0]?.position).toEqual({ line: 4, column: 3 })
  })

  test('after any text, a key is found on its own line', () => {
    const blank = fc.constantFrom('', '# comment', '- other: 1')
    fc.assert(
      fc.property(fc.array(blank, { maxLength: 6 }), fc.integer({ min: 1, max: 8 }), (before, indent) => {
        const pad = ' '.repeat(indent)
        const lines = [...before, '- needle: here'].map((line) => (line === '' ? '' : `${pad}${line}`))
        const text = `top:\n key: |\n ${lines.join('\n ')}\n`
        const document = one(text)
        document.embed(['top', 'key'])
        const index = before.filter((line) => line.startsWith('-')).length
        const { line, column } = document.position(['top', 'key', index, 'needle'])
        expect(text.split('\n')[line - 1]?.slice(column - 1)).toBe('needle: here')
      }),
    )
  })
})

test('numbers keep the text they were written with', () => {
  const document = one('a: 1.10\nb: 0644\nc: True\nd: "x"\n')
  expect(['a', 'b', 'c', 'd'].map((key) => document.scalarText([key]))).toEqual(['1.10', '0644', 'True', 'x'])
})

test('no text makes it throw', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', ':', ' ', '\n', '-', '[', '{', '&', '*', '|', '#', '"') }),
      (text) => {
        for (const document of readYaml(text).documents) {
          document.embed(['a'])
          document.toValue(plain)
          document.position(['a', 0, 'b'])
        }
      },
    ),
  )
})

describe('a large document is read in time that grows with its size', () => {
  const count = 20_000
  const numbers = Array.from({ length: count }, (_, i) => i)
  const nothing = { text: (value: string) => value, report: () => {} }

  test.each([
    ['keys', numbers.map((i) => `k${i}: 1`).join('\n'), count],
    ['aliases of one anchor', `a: &x 1\nb: [${numbers.map(() => '*x').join(', ')}]`, 2],
    ['aliases of many anchors', numbers.map((i) => `k${i}: [&x${i} ${i}, *x${i}]`).join('\n'), count],
  ])('%s', { timeout: 60_000 }, (_what, text, keys) => {
    const started = performance.now()
    const document = one(text)
    expect(document.problems).toEqual([])
    const value = document.toValue(nothing)
    expect(Object.keys(value ?? {})).toHaveLength(keys)
    for (const key of Object.keys(value ?? {})) document.position([key, 'absent'])
    // Each took more than a minute when every key or alias cost a walk through all others.
    expect(performance.now() - started).toBeLessThan(30_000)
  })

  test('an alias has the last value before it that has its anchor', () => {
    const value = one('a: &x 1\nb: *x\nc: &x 2\nd: [*x, &x {e: *x}]\nf: *x\ng: *y\n').toValue(nothing)
    expect(value).toMatchObject({ a: 1, b: 1, c: 2, f: { e: expect.anything() } })
  })

  test.each([
    ['k: 1\nother: 2\nk: 3\n', { line: 3, column: 1 }],
    ['a: {k: 1, k: 2}\n', { line: 1, column: 11 }],
    ['a:\n  - 1: x\n    "1": y\n', { line: 3, column: 5 }],
  ])('a key that is there twice is a problem at its place: %j', (text, position) => {
    expect(one(text).problems).toEqual([{ position, message: 'YAML: Map keys must be unique' }])
  })
})
