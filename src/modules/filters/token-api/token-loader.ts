import type { TokenUser } from '#contract/token.ts'
import type { Exchange } from '#sdk/exchange.ts'

export type LoadedTokens = Omit<TokenUser, 'displayName'>

/** What a token page shows, wherever it comes from. */
export interface TokenLoader {
  /** Changes nothing. */
  load(exchange: Exchange): Promise<LoadedTokens>
  /** Makes new tokens, and gives them. Absent where there is nothing to make. */
  renew?(exchange: Exchange): Promise<LoadedTokens>
}
