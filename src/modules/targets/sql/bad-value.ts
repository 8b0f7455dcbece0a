import { GatewayError } from '#kernel/errors.ts'
import { type Column, canonical } from './column.ts'

/** Values that go into one call; more is refused before a database has to. */
const maxValues = 1000

/** Throws BAD_REQUEST by the attribute's name. */
export function refuse(attribute: string, reason: string): never {
  const publicText = `"${attribute}" ${reason}.`
  throw new GatewayError('BAD_REQUEST', publicText, { publicText, keyword: 'invalidValue' })
}

/** The value as the column will give it back. Throws BAD_REQUEST by the names of the attribute and the column. */
export function held(attribute: string, column: Column, value: string): string {
  const found = canonical(column, value)
  if (found !== undefined) return found
  const { maxLength, type, name } = column
  const limit = maxLength === undefined ? '' : ` of at most ${maxLength} characters`
  const publicText = `"${attribute}" has a value that cannot be stored.`
  throw new GatewayError('BAD_REQUEST', `"${attribute}": column "${name}" (${type}${limit}) cannot hold the value`, {
    publicText,
    keyword: 'invalidValue',
  })
}

/** The values as the column will give them back, each once. */
export function heldValues(attribute: string, column: Column, values: readonly string[]): string[] {
  if (values.length > maxValues) refuse(attribute, `has more than ${maxValues} values`)
  return [...new Set(values.map((value) => held(attribute, column, value)))]
}
