import { describe, expect, test } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { parseObjectTemplate } from './object-template.ts'

const user = userOf('ada') as WorkflowUser

const rendered = (template: string, request: Readonly<Record<string, unknown>> = {}): unknown =>
  parseObjectTemplate(template).render({ request: new Map(Object.entries(request)), user })

const hostile = [
  'a: b',
  'x\nadmin: true',
  '"quoted" and \'single\'',
  '---\nkind: ClusterRoleBinding',
  '{{ .Values.x }}',
  '# a comment',
  '*alias &anchor !!int 5',
  '$other$',
  '\u2028日本語\u0000',
  'x'.repeat(5_000),
]

describe('a template of an object', () => {
  test.each(hostile)('keeps the value %j one text, in every kind of scalar', (value) => {
    const template = `
spec:
  plain: $v$
  within: a-$v$-b
  double: "$v$"
  single: '$v$'
  block: |-
    $v$
    end
  folded: >-
    $v$
  flow: {key: $v$, list: ["$v$"]}
  "k-$v$": 1`
    expect(rendered(template, { v: value, other: 'SECOND' })).toEqual({
      spec: {
        plain: value,
        within: `a-${value}-b`,
        double: value,
        single: value,
        block: `${value}\nend`,
        folded: value,
        flow: { key: value, list: [value] },
        [`k-${value}`]: 1,
      },
    })
  })

  test('reads JSON with placeholders', () => {
    expect(rendered('{"metadata": {"annotations": {"a": "$a$"}}, "n": $n$}', { a: 'x"y', n: '3' })).toEqual({
      metadata: { annotations: { a: 'x"y' } },
      n: 3,
    })
  })

  test('types unquoted values except where Kubernetes has texts', () => {
    const template = `
metadata:
  name: $n$
  labels: {a: $n$, b: $t$}
spec:
  replicas: $n$
  paused: $t$
  quoted: "$n$"
  part: $n$m
  name: $n$
  big: $big$
data:
  n: $n$`
    expect(rendered(template, { n: '42', t: 'true', big: '00012' })).toEqual({
      metadata: { name: '42', labels: { a: '42', b: 'true' } },
      spec: { replicas: 42, paused: true, quoted: '42', part: '42m', name: '42', big: '00012' },
      data: { n: '42' },
    })
  })

  test('reads fixed values as Kubernetes does', () => {
    expect(rendered('{mode: 0644, hex: 0x10, on: yes, off: "no", none: ~, empty: , f: 1.5, s: 1.2.3, v: y}')).toEqual({
      mode: 420,
      hex: 16,
      on: true,
      off: 'no',
      none: null,
      empty: null,
      f: 1.5,
      s: '1.2.3',
      v: 'y',
    })
  })

  test('a line with nothing but a placeholder is one entry, or none', () => {
    const template = `
metadata:
  annotations:
    a: "$a$"
    $line$
  note: |
    first
    $line$`
    const of = (line: string | undefined) => rendered(template, { a: '1', line })
    expect(of(undefined)).toEqual({ metadata: { annotations: { a: '1' }, note: 'first\n\n' } })
    expect(of('tremolo.io/giturl: git@host:x.git')).toEqual({
      metadata: {
        annotations: { a: '1', 'tremolo.io/giturl': 'git@host:x.git' },
        note: 'first\ntremolo.io/giturl: git@host:x.git\n',
      },
    })
    expect(of('x: y\nz: w')).toMatchObject({ metadata: { annotations: { x: 'y\nz: w' } } })
    expect(() => of('no entry')).toThrow('neither empty nor')
    expect(() => of('a: 2')).toThrow('twice')
    expect(() => of('__proto__: 2')).toThrow('not allowed')
  })

  test.each([
    ['a: b\n---\nc: d', 'several documents'],
    ['a: [', 'line 1'],
    ['ok: 1\na: b: c', 'line 2'],
    ['a: 1\na: 2', 'unique'],
    ['a: !!js/function x', 'tag'],
    ['', 'empty'],
    ['__proto__: 1', 'not allowed'],
    [`a: ${'['.repeat(60)}${']'.repeat(60)}`, 'too deep'],
  ])('rejects %j', (template, message) => {
    expect(() => parseObjectTemplate(template)).toThrow(message)
  })

  test('rejects a value that is not Unicode', () => {
    expect(() => rendered('a: $v$', { v: '\ud800' })).toThrow('Unicode')
  })
})
