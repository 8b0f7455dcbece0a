import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { parseTemplate } from '#kernel/template.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { accountShapes, issuerShapes, judgeSubject } from './subject-template.ts'

const rule = (constraint: string): Rule => ({ scope: 'filter', constraint, filter: parseFilter(constraint) })

const verdictOf = (text: string, options: { several?: boolean; rules?: string[] } = {}) =>
  judgeSubject(text, accountShapes, {
    severalPlaces: options.several ?? false,
    rules: (options.rules ?? ['(namespace=*)']).map(rule),
  })

describe('the subject of service accounts', () => {
  test.each([
    '${token_sub}',
    '${username}',
    '${namespace}:${saname}',
    '${namespace}/${saname}',
    'system:${namespace}:x:${saname}',
    '${cluster}:${namespace}:${saname}',
    '${cluster}-${namespace}:${saname}',
    '${saname}.${namespace}',
    '${namespace}.${saname}',
    '${namespace}-${saname}:${namespace}',
    '${namespace}:${saname}:${pod-name}${node-name}',
  ])('%s belongs to one account', (text) => expect(verdictOf(text)).toEqual({ kind: 'unique' }))

  test.each([
    ['${namespace}-${saname}', 'namespace', 'saname'],
    ['${namespace}${saname}', 'namespace', 'saname'],
    ['${saname}-${namespace}', 'saname', 'namespace'],
    ['${namespace}-a-${saname}', 'namespace', 'saname'],
    ['${uid}/${namespace}-${saname}', 'namespace', 'saname'],
    ['${saname}${pod-name}:${namespace}', 'saname', 'pod-name'],
  ])('%s can belong to two accounts', (text, left, right) =>
    expect(verdictOf(text)).toEqual({ kind: 'ambiguous', left, right }),
  )

  test('a cluster counts if there are several', () => {
    expect(verdictOf('${namespace}:${saname}', { several: true })).toEqual({ kind: 'shared', by: ['cluster'] })
    expect(verdictOf('${cluster}.${namespace}:${saname}', { several: true })).toMatchObject({ kind: 'unique' })
    expect(verdictOf('${cluster}_${namespace}:${saname}', { several: true })).toMatchObject({ kind: 'unique' })
    expect(verdictOf('${cluster}-${namespace}:${saname}', { several: true })).toMatchObject({ kind: 'ambiguous' })
    expect(verdictOf('${username}', { several: true })).toEqual({ kind: 'shared', by: ['cluster'] })
  })

  test('one subject for many is reported, unless rules leave one account', () => {
    expect(verdictOf('${namespace}')).toEqual({ kind: 'shared', by: ['saname'] })
    expect(verdictOf('robot')).toEqual({ kind: 'shared', by: ['namespace', 'saname'] })
    expect(verdictOf('robot', { rules: ['(&(namespace=shop)(saname=cart))'] })).toEqual({ kind: 'unique' })
    expect(verdictOf('${namespace}', { rules: ['(saname=a)', '(&(x=*)(saname=a))'] })).toEqual({ kind: 'unique' })
    expect(verdictOf('${namespace}', { rules: ['(saname=a)', '(saname=b)'] })).toMatchObject({ kind: 'shared' })
    expect(verdictOf('${namespace}', { rules: ['(|(saname=a)(namespace=b))'] })).toMatchObject({ kind: 'shared' })
    expect(verdictOf('${namespace}-${saname}', { rules: ['(namespace=shop)'] })).toEqual({ kind: 'unique' })
    expect(verdictOf('${namespace}', { rules: [] })).toMatchObject({ kind: 'shared' })
  })

  const label = fc.stringMatching(/^[a-b](?:[ab-]{0,3}[ab])?$/)
  const subdomain = fc.stringMatching(/^[ab](?:[ab.-]{0,3}[ab])?$/)
  const cluster = fc.stringMatching(/^[ab._-]{1,3}$/)
  const account = fc.record({ cluster, namespace: label, saname: subdomain })
  const part = fc.constantFrom(
    '${namespace}',
    '${saname}',
    '${cluster}',
    '${token_sub}',
    '${username}',
    '${pod-name}',
    ':',
    '/',
    '-',
    '.',
    '_',
    'a',
  )

  test('two accounts never have the same subject by an accepted template', () => {
    const template = fc.array(part, { minLength: 1, maxLength: 7 }).map((parts) => parts.join(''))
    let accepted = 0
    let refused = 0
    const property = fc.property(
      template,
      fc.boolean(),
      fc.array(account, { minLength: 30, maxLength: 30 }),
      (text, several, accounts) => {
        const isUnique = verdictOf(text, { several }).kind === 'unique'
        if (isUnique) accepted++
        else refused++
        const parsed = parseTemplate(text, { keys: false, attributes: true })
        const first = accounts[0]?.cluster ?? ''
        const subjects = new Map<string, string>()
        for (const each of accounts) {
          const one = { ...each, cluster: several ? each.cluster : first }
          const values = new Map<string, string>([
            ...Object.entries(one),
            ['token_sub', `${one.cluster}:${one.namespace}:${one.saname}`],
            ['username', `system:serviceaccount:${one.namespace}:${one.saname}`],
            ['pod-name', one.saname.slice(0, 1)],
          ])
          const subject = parsed.render({ attribute: (name) => values.get(name) })
          const who = JSON.stringify(one)
          if (isUnique && (subjects.get(subject) ?? who) !== who) {
            throw new Error(`${text}: ${who} and ${subjects.get(subject)} are both ${subject}`)
          }
          subjects.set(subject, who)
        }
      },
    )
    const numRuns = sampled(1000, 5000)
    fc.assert(property, { numRuns })
    expect(accepted).toBeGreaterThan(numRuns / 17)
    expect(refused).toBeGreaterThan(numRuns / 17)
  })
})

describe('the subject of an issuer', () => {
  const judge = (text: string, severalPlaces: boolean) =>
    judgeSubject(text, issuerShapes, { severalPlaces, rules: [rule('(repository=a/b)')] }).kind

  test('is unique by issuer and sub, and by nothing that the issuer can choose', () => {
    expect(judge('${token_sub}', true)).toBe('unique')
    expect(judge('${issuer}:${sub}', true)).toBe('unique')
    expect(judge('${issuer}/${sub}', true)).toBe('unique')
    expect(judge('${sub}', false)).toBe('unique')
    expect(judge('${sub}', true)).toBe('shared')
    expect(judge('${issuer}-${sub}', true)).toBe('ambiguous')
    expect(judge('${repository}', false)).toBe('shared')
    expect(judge('${sub}:${repository}', false)).toBe('ambiguous')
  })
})
