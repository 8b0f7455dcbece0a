import { describe, expect, it } from 'vitest'
import { Issues } from '#kernel/issues.ts'
import { fakeParseContext, issueTexts } from '#testing/modules/fake-parse.ts'
import { parseRule } from './rule.ts'

function parse(...[scope, constraint]: [Parameters<typeof parseRule>[0], string]) {
  const issues = new Issues()
  const context = fakeParseContext()
  const rule = parseRule(scope, constraint, ['azRules', 0], issues, context)
  return { rule, issues: issueTexts(issues.list), references: context.references }
}

describe('parseRule', () => {
  it('parses every scope', () => {
    expect(parse('dn', 'ou=a, o=b').rule).toMatchObject({ scope: 'dn', dn: { key: 'ou=a,o=b' } })
    expect(parse('group', 'cn=g,o=b').rule).toMatchObject({ group: { key: 'cn=g,o=b' } })
    expect(parse('dynamicGroup', 'cn=g,o=b').rule).toMatchObject({ group: { key: 'cn=g,o=b' } })
    expect(parse('filter', '(cn=x)').rule).toMatchObject({ filter: { kind: 'equal', attribute: 'cn', value: 'x' } })
    expect(parse('custom', 'mine!a!b')).toMatchObject({
      rule: { name: 'mine', params: ['a', 'b'] },
      references: [{ kind: 'custom authorization', name: 'mine', path: ['azRules', 0] }],
    })
  })

  it('reports an invalid constraint, and creates no rule', () => {
    expect(parse('filter', '(cn=x')).toMatchObject({
      rule: undefined,
      issues: ['error azRules.0: filter: expected ")" at character 6'],
    })
    expect(parse('dn', 'users')).toMatchObject({
      rule: undefined,
      issues: ['error azRules.0: distinguished name: expected "=" behind the attribute type at character 6'],
    })
  })
})
