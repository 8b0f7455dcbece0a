import { kubectlTokenKeys as keys } from '#features/portal/contract/constants.ts'
import type { TokenUser } from '#features/portal/contract/token.ts'
import type { MessageKey } from '../../app/messages.ts'

export type PartKind = 'token' | 'command' | 'text' | 'file' | 'value'

export interface TokenPart {
  readonly name: string
  /** The heading, for the names that the gateway gives. */
  readonly label?: MessageKey
  readonly value: string
  readonly kind: PartKind
  /** For a value that is a file. */
  readonly fileName?: string
}

/** The known names, in the order in which users need them. */
const known: readonly Omit<TokenPart, 'value'>[] = [
  { name: keys.usage, label: 'token.usage', kind: 'text' },
  { name: keys.command, label: 'token.command', kind: 'command' },
  { name: keys.windowsCommand, label: 'token.windowsCommand', kind: 'command' },
  { name: keys.loginPlugin, label: 'token.loginPlugin', kind: 'command' },
  { name: keys.idToken, kind: 'token' },
  { name: keys.refreshToken, kind: 'token' },
  { name: keys.kubeconfig, kind: 'file', fileName: 'kubeconfig.yaml' },
  { name: keys.clusterCertificate, label: 'token.clusterCertificate', kind: 'file', fileName: 'kubernetes-ca.pem' },
  { name: keys.ownCertificate, label: 'token.ownCertificate', kind: 'file', fileName: 'portal-ca.pem' },
]

/** All parts to show; unknown names of other loaders come after the known ones, in their order. */
export function tokenParts(token: TokenUser['token']): readonly TokenPart[] {
  const parts = known.flatMap((part) => {
    const value = Object.hasOwn(token, part.name) ? token[part.name] : undefined
    return value === undefined ? [] : [{ ...part, value }]
  })
  const named = new Set(known.map(({ name }) => name))
  const others = Object.entries(token).flatMap(([name, value]): TokenPart[] =>
    named.has(name) ? [] : [{ name, value: String(value), kind: 'value' }],
  )
  return [...parts, ...others]
}
