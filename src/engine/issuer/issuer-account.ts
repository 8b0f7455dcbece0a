import { AsyncLocalStorage } from 'node:async_hooks'
import { JsonDocument, type MappedValue } from '#identity/mapping/mapped-value.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
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

/** Somebody who is logged in, and may be at this issuer. */
export interface Person {
  readonly sessionId: string
  readonly level: number
  readonly authenticated: Date
  readonly account: IssuerAccount
}

/** One request on its way through the provider, which knows nothing of our sessions. */
export interface IssuerCall {
  readonly exchange: Exchange
  /** Undefined for applications, and for people who are not logged in. */
  readonly person: Person | undefined
  /** What somebody followed a link with, to be shown in the form instead of being sent by a script. */
  readonly userCode: string | undefined
  /** Given instead of what the provider answers. */
  answer?: GatewayResponse
  /** Set when the person asked for it. */
  endsSession?: boolean
  /** What the provider could not find out, which it would answer as a failure of its own. */
  failure?: GatewayError
  /** For the audit: whose tokens they are, and of which application. */
  issued?: { readonly account: IssuerAccount; readonly clientId: string; jti?: string }
}

const calls = new AsyncLocalStorage<IssuerCall>()

export const duringCall = <T>(call: IssuerCall, work: () => Promise<T>): Promise<T> => calls.run(call, work)

/** Undefined outside of a request, as where tokens are made at a login. */
export const presentCall = (): IssuerCall | undefined => calls.getStore()
