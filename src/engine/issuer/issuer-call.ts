import { AsyncLocalStorage } from 'node:async_hooks'
import type { IssuerAccount } from '#engine/issuer/issuer-account.ts'
import type { GatewayError } from '#kernel/errors.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

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
