import type { TokenUser } from '#contract/token.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'

export type LoadedTokens = Omit<TokenUser, 'displayName'>

/** Loads the content of a token page. */
export interface TokenLoader {
  /** Changes nothing. */
  load(exchange: Exchange): Promise<LoadedTokens>
  /** Creates and returns new tokens. Absent if there are none to create. */
  renew?(exchange: Exchange): Promise<LoadedTokens>
}

export const totpKey = 'TOTP URL'
const passwordKey = 'Temporary Password'

const textOf = (attributes: Attributes, name: string): string => attributes.values(name).join(', ')

/** Attributes of the caller, unchanged. */
export const attributeLoader = (names: readonly string[]): TokenLoader => ({
  load: async ({ subject }) => ({
    token: Object.fromEntries(
      names.flatMap((name) => {
        const value = textOf(subject.attributes, name)
        return value === '' ? [] : [[name, value]]
      }),
    ),
  }),
})

export const passwordLoader = (name: string): TokenLoader => ({
  load: async ({ subject }) => {
    const value = subject.attributes.first(name)
    return { token: value === undefined ? {} : { [passwordKey]: value } }
  },
})

/** The key of an authenticator app: Base32, or an otpauth address. */
export const totpLoader = (name: string, uidAttribute: string | undefined, issuer: string): TokenLoader => ({
  load: async ({ subject }) => {
    const key = subject.attributes.first(name)
    if (key === undefined) return { token: {} }
    if (key.startsWith('otpauth://totp/')) return { token: { [totpKey]: key } }
    const uid = uidAttribute === undefined ? subject.uid : (subject.attributes.first(uidAttribute) ?? subject.uid)
    const address = new URL(`otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(uid)}`)
    address.searchParams.set('secret', key.replaceAll(/\s/g, ''))
    address.searchParams.set('issuer', issuer)
    return { token: { [totpKey]: address.href } }
  },
})
