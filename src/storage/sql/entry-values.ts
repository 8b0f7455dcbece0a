import type { Attributes } from '#identity/attributes.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { assertStorable, foldKey, indexKey, isLong, numberOf } from '#storage/client/text-keys.ts'

/** A value of an attribute as its table holds it, apart from the entry it belongs to. */
export type ValueColumns = {
  readonly name_key: string
  readonly position: number
  readonly name: string
  readonly value: string
  readonly value_key: string
  readonly long_key: string | null
  readonly number: bigint | null
}

export function valueColumns(name: string, values: readonly string[], from = 0): ValueColumns[] {
  const nameKey = foldKey(name)
  return values.map((value, i) => {
    const folded = foldKey(value)
    return {
      name_key: nameKey,
      position: from + i,
      name,
      value,
      value_key: indexKey(folded),
      long_key: isLong(folded) ? folded : null,
      number: numberOf(value),
    }
  })
}

const refuse = (publicText: string): never => {
  throw new GatewayError('BAD_REQUEST', publicText, { publicText })
}

/** For a login, a group's name or an attribute's name. */
export function checkName(what: string, name: string): void {
  if (name === '') refuse(`The ${what} is empty.`)
  if (Buffer.byteLength(name) > directoryLimits.nameBytes) refuse(`The ${what} is too long.`)
  assertStorable(what, name)
}

export function checkAttributes(attributes: Attributes | ReadonlyMap<string, readonly string[]>): void {
  if (attributes.size > directoryLimits.attributes) refuse('There are too many attributes.')
  for (const [name, values] of attributes) {
    checkName('attribute name', name)
    if (values.length > directoryLimits.valuesPerAttribute) refuse(`The attribute ${name} has too many values.`)
    for (const value of values) {
      // Three bytes are the most that a UTF-16 unit takes, so most values need no counting.
      const long =
        value.length * 3 > directoryLimits.valueBytes && Buffer.byteLength(value) > directoryLimits.valueBytes
      if (long) refuse(`A value of the attribute ${name} is too long.`)
      assertStorable(`value of ${name}`, value)
    }
  }
}

/** For a list of logins or group names; gives them without repetition, by folded key. */
export function checkNames(what: string, names: readonly string[]): Map<string, string> {
  const byKey = new Map<string, string>()
  for (const name of names) {
    checkName(what, name)
    const key = foldKey(name)
    if (!byKey.has(key)) byKey.set(key, name)
  }
  if (byKey.size > directoryLimits.memberships) refuse('There are too many memberships.')
  return byKey
}
