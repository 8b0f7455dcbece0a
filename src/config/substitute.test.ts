import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Substitution } from '#config/substitute.ts'

function apply(text: string, environment: Record<string, string>, values: Record<string, string>) {
  const problems: string[] = []
  const substitution = new Substitution(environment, new Map(Object.entries(values)))
  return { text: substitution.apply(text, [], (_path, message) => problems.push(message)), problems }
}

test('the environment wins over values, and values over the default', () => {
  expect(apply('#[A] #[B] #[C:c:d] #[D:]', { A: 'env' }, { A: 'value', B: 'value', C: 'given' })).toEqual({
    text: 'env value given ',
    problems: [],
  })
  expect(apply('#[C:c:d]', {}, {}).text).toBe('c:d')
})

test('an OpenUnison name with dots and dashes is a name', () => {
  expect(apply('#[a.b-c.D]', {}, { 'a.b-c.D': 'x' }).text).toBe('x')
})

test('names of JavaScript itself are not values', () => {
  expect(apply('#[constructor]', {}, {}).problems).toHaveLength(1)
})

test('substituted text is never parsed again', () => {
  fc.assert(
    fc.property(fc.string(), (inner) => {
      expect(apply('<#[A]>', { A: `#[B]${inner}` }, { B: 'leak' }).text).toBe(`<#[B]${inner}>`)
    }),
  )
})

test('an unknown name is empty, with a reason', () => {
  const { text, problems } = apply('#[HOSTS]', {}, { HOST: 'x' })
  expect(text).toBe('')
  expect(problems).toEqual(['#[HOSTS] is neither in the environment nor in a values document (did you mean "HOST"?)'])
})
