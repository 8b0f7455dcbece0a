import { JsonDocument, type MappedValue } from '#identity/mapping/mapped-value.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'

/** A person as the applications of an issuer know them. */
export interface IssuerAccount {
  /** The login, for the audit. */
  readonly uid: string
  readonly sub: string
  /** All claims but `sub`. */
  readonly claims: JsonObject
}

/** Consumers take these as lists only, also where there is one value. */
const lists = new Set(['groups', 'roles', 'entitlements'])
const flags = new Set(['email_verified', 'phone_number_verified'])

/** Throws ACCESS_DENIED where the person has no `sub`: nobody could tell them from others. */
export async function accountOf({ uid, attributes }: Subject, mapping: Mapping): Promise<IssuerAccount> {
  const source = {
    userID: uid,
    groups: [],
    values: (name: string) => attributes.values(name),
    names: () => attributes.names(),
  }
  const { sub, ...claims } = Object.fromEntries(
    Array.from(await mapping.apply(source), ([name, value]) => [name, claimOf(name, value)]),
  )
  if (typeof sub !== 'string' || sub === '') {
    throw new GatewayError('ACCESS_DENIED', `"${uid}" has nothing that the claim "sub" could be made of`)
  }
  return { uid, sub, claims }
}

function claimOf(name: string, value: MappedValue): JsonValue {
  if (value instanceof JsonDocument) return value.value
  const [first = ''] = value
  if (flags.has(name) && (first === 'true' || first === 'false')) return first === 'true'
  return value.length === 1 && !lists.has(name) ? first : [...value]
}

/** Undefined for what is no account, as after a change of format. */
export function readAccount(value: unknown): IssuerAccount | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { uid, sub, claims } = value as Record<string, JsonValue | undefined>
  if (typeof uid !== 'string' || typeof sub !== 'string' || claims === undefined || !isJsonObject(claims))
    return undefined
  return { uid, sub, claims }
}
