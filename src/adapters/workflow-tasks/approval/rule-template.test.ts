import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { Issues } from '#kernel/issues.ts'
import type { Rule, ruleScopes } from '#sdk/rule/rule.ts'
import { fakeParseContext } from '#testing/modules/fake-parse.ts'
import { parseRuleTemplate, type RuleTemplate, type RuleValues } from './rule-template.ts'

type Scope = (typeof ruleScopes)[number]

function parse(scope: Scope, constraint: string): { template: RuleTemplate | undefined; problems: string[] } {
  const issues = new Issues()
  const template = parseRuleTemplate(scope, constraint, ['here'], issues, fakeParseContext())
  return { template, problems: issues.list.map(({ message }) => message) }
}

const values = (keys: Record<string, string[]>, attributes: Record<string, string[]> = {}): RuleValues => ({
  key: (name) => keys[name] ?? [],
  attribute: (name) => attributes[name] ?? [],
})

function bound(scope: Scope, constraint: string, keys: Record<string, string[]>, attributes = {}): Rule | undefined {
  const { template, problems } = parse(scope, constraint)
  expect(problems).toEqual([])
  return template?.bind(values(keys, attributes))
}

const hostile = fc.oneof(
  fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }),
  fc.constantFrom(
    '*)(uid=*',
    '*',
    ')(|(uid=*',
    'x,o=Tremolo',
    'x+uid=admin',
    '\\2a',
    '${cn}',
    '$ns$',
    'a!b',
    ' ',
    '#04',
    '"',
  ),
)

describe('a filter', () => {
  const people = [
    Attributes.from({ uid: ['admin'], approves: ['prod'] }),
    Attributes.from({ uid: ['other'], approves: ['test'] }),
  ]

  test('D8: a request value is only ever a value', () => {
    const rule = bound('filter', '(approves=$namespace$)', { namespace: ['*)(uid=*'] })
    if (rule?.scope !== 'filter') throw new Error('no filter')
    expect(rule.filter).toEqual({ kind: 'equal', attribute: 'approves', value: '*)(uid=*' })
    expect(people.filter((one) => matches(rule.filter, one))).toEqual([])
    expect(parseFilter(rule.constraint)).toEqual(rule.filter)
  })

  test('any value keeps its structure, and its text parses as the same filter', () => {
    fc.assert(
      fc.property(hostile, hostile, (key, attribute) => {
        const rule = bound('filter', '(&(approves=$ns$)(|(dept=${d})(team=x$ns$*)))', { ns: [key] }, { d: [attribute] })
        if (rule?.scope !== 'filter') throw new Error('no filter')
        expect(rule.filter).toEqual({
          kind: 'and',
          filters: [
            { kind: 'equal', attribute: 'approves', value: key },
            {
              kind: 'or',
              filters: [
                { kind: 'equal', attribute: 'dept', value: attribute },
                { kind: 'substring', attribute: 'team', initial: `x${key}`, any: [] },
              ],
            },
          ],
        })
        expect(parseFilter(rule.constraint)).toEqual(rule.filter)
      }),
    )
  })

  test('treats several values of an attribute as alternatives', () => {
    expect(bound('filter', '(dept=${d})', {}, { d: ['a', 'b'] })?.constraint).toBe('(|(dept=a)(dept=b))')
  })

  test.each([['(a=$x'], ['($x$=a)'], ['$x$'], ['(a=b)$x$']])('%s is not a filter', (constraint) => {
    expect(parse('filter', constraint).problems).toHaveLength(1)
  })
})

describe('a name', () => {
  test('treats any value as one part, and its text parses as the same name', () => {
    fc.assert(
      fc.property(hostile, (value) => {
        const rule = bound('group', 'cn=approvers-$ns$,ou=groups,o=Tremolo', { ns: [value] })
        if (rule?.scope !== 'group') throw new Error('no group')
        expect(rule.group.rdns).toEqual([
          [{ type: 'cn', value: `approvers-${value}` }],
          [{ type: 'ou', value: 'groups' }],
          [{ type: 'o', value: 'Tremolo' }],
        ])
        expect(Dn.parse(rule.constraint).rdns).toEqual(rule.group.rdns)
      }),
    )
  })

  test('cannot consist of a value, so that no caller names the approvers', () => {
    expect(parse('dn', '$manager$').problems).toHaveLength(1)
    expect(parse('dn', '$type$=x,o=Tremolo').problems).toHaveLength(1)
    expect(parse('dn', '${manager}').problems).toHaveLength(1)
  })
})

test('a custom rule treats a value as one parameter', () => {
  expect(bound('custom', 'manager!$who$!x', { who: ['a!b'] })).toEqual({
    scope: 'custom',
    constraint: 'manager!$who$!x',
    name: 'manager',
    params: ['a!b', 'x'],
  })
})

describe('without its values', () => {
  const constraints = {
    filter: '(a=$x$)',
    dn: 'cn=$x$,o=T',
    group: 'cn=$x$,o=T',
    dynamicGroup: 'cn=$x$',
    custom: 'n!$x$',
  }
  test.each(Object.entries(constraints))('a rule of scope %s matches no user', (scope, constraint) => {
    for (const missing of [[], [''], ['x'.repeat(1001)]]) {
      expect(bound(scope as Scope, constraint, { x: missing })).toBeUndefined()
    }
    expect(bound(scope as Scope, constraint, { x: ['y'] })).toBeDefined()
    if (scope !== 'filter') expect(bound(scope as Scope, constraint, { x: ['y', 'z'] })).toBeUndefined()
  })
})
