import type { GatewayResponse } from '#sdk/http.ts'
import type { ScimCall } from './scim-call.ts'

export type Handler = (call: ScimCall) => Promise<GatewayResponse>
export type Methods = ReadonlyMap<string, Handler>

/** What stands at a path, and whose id the path names. */
export interface Route {
  readonly methods: Methods
  /** Empty where the path names none. */
  readonly id: string
}

/** Undefined where there is nothing. Throws NOT_FOUND when the path is not well encoded. */
export type FindRoute = (path: string) => Route | undefined
