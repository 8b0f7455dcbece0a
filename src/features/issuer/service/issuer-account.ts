import { AsyncLocalStorage } from 'node:async_hooks'
import { JsonDocument, type MappedValue } from '#identity/mapping/mapped-value.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'

/** A user as the applications of an issuer know them. */
export interface IssuerAccount {
  /** The login, for the audit. */
  readonly uid: string
  readonly sub: string
  /** All claims except `sub`. */
  readonly claims: JsonObject
}

/** Consumers accept these only as lists, even for one value. */
const lists = new Set(['groups', 'roles', 'entitlements'])
const flags = new Set(['email_verified', 'phone_number_verified'])

/** Throws ACCESS_DENIED if the user has no `sub`, because applications could not identify them. */
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

/** Undefined for anything else, as after a change of format. */
export function readAccount(value: unknown): IssuerAccount | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { uid, sub, claims } = value as Record<string, JsonValue | undefined>
  if (typeof uid !== 'string' || typeof sub !== 'string' || claims === undefined || !isJsonObject(claims))
    return undefined
  return { uid, sub, claims }
}

/** A logged-in user who may use this issuer. */
export interface Person {
  readonly sessionId: string
  readonly level: number
  readonly authenticated: Date
  readonly account: IssuerAccount
}

/** One request to the provider, which knows nothing of our sessions. */
export interface IssuerCall {
  readonly exchange: Exchange
  /** Undefined for applications, and for users who are not logged in. */
  readonly person: Person | undefined
  /** The code from a link, shown in the form so that the user submits it and no script does. */
  readonly userCode: string | undefined
  /** Replaces the provider's response. */
  answer?: GatewayResponse
  /** Set if the user requested it. */
  endsSession?: boolean
  /** An error that the provider would report as its own failure. */
  failure?: GatewayError
  /** The id of the refresh token that replaces the one of this request, if this request stores it. */
  successor?: string
  /** The refresh token of this request was just replaced, by this one. */
  replacedBy?: string
  /** Another request replaced the refresh token at the same time. */
  raced?: true
  /** For the audit: the user, the session and the application of the tokens. */
  issued?: {
    readonly account: IssuerAccount
    readonly sessionId?: string | undefined
    readonly clientId: string
    jti?: string
  }
}

const calls = new AsyncLocalStorage<IssuerCall>()

export const duringCall = <T>(call: IssuerCall, work: () => Promise<T>): Promise<T> => calls.run(call, work)

/** Undefined outside of a request, as for tokens issued at a login. */
export const presentCall = (): IssuerCall | undefined => calls.getStore()
