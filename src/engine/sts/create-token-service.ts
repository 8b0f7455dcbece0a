import type { HostFor } from '#engine/engine-host.ts'
import {
  createIssuingState,
  type IssuingEndpoint,
  type IssuingParts,
  type IssuingState,
  TokenIssuing,
} from '#engine/sts/token-issuing.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import type { StsEndpointConfig } from '#sdk/module/configuration.ts'
import type { TokenKeys } from '#sdk/sts/token-keys.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'

/** What outlives a configuration, as far as the token service is concerned. */
export interface TokenServices {
  readonly clock: Clock
  readonly log: Logger
  readonly audit: Pick<AuditStore, 'append'>
  readonly tokenKeys?: TokenKeys
  readonly issuing?: IssuingState
  readonly countExchange?: IssuingParts['count']
}

export interface TokenServiceParts extends Pick<IssuingParts, 'target' | 'decide'> {
  readonly services: TokenServices
  readonly endpoints: readonly StsEndpointConfig[]
  readonly host: HostFor
  readonly scope: Scope
}

/** Undefined where no endpoint is configured. */
export async function createTokenService(parts: TokenServiceParts): Promise<TokenIssuing | undefined> {
  const { services, endpoints, host, scope, target, decide } = parts
  if (endpoints.length === 0) return undefined
  if (services.tokenKeys === undefined) throw new Error('token endpoints need keys, and there is no store of them')
  const issuing = new Map<string, IssuingEndpoint>()
  for (const { endpoint, rules, claims, at } of endpoints) {
    const mapping = scope.own(await claims.create(host(endpoint.name, 'sts', at)))
    issuing.set(endpoint.name, { endpoint, rules, claims: mapping })
  }
  return new TokenIssuing({
    clock: services.clock,
    log: services.log,
    audit: services.audit,
    keys: services.tokenKeys,
    state: services.issuing ?? createIssuingState(services.clock),
    endpoints: issuing,
    target,
    decide,
    ...(services.countExchange === undefined ? {} : { count: services.countExchange }),
  })
}
