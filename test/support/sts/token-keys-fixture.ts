import { createSecretKey, hash, type KeyObject } from 'node:crypto'
import type { TokenIssuer } from '#config/configuration/token-keys.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import type { KeyStore } from '#keys/key-store.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { keyOwners } from '#keys/token-key-pair.ts'
import { type RingParts, TokenKeyRings } from '#keys/token-key-rings.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'

export const tokenIssuer = (more: Partial<TokenIssuer> = {}): TokenIssuer => ({
  endpoint: 'aws',
  issuer: 'https://issuer.example.com/aws',
  algorithm: 'ES256',
  keypair: 'aws',
  maxTokenSeconds: 900,
  claims: [],
  rotateSeconds: 90 * 86_400,
  readBack: 'issuer',
  cdnSeconds: undefined,
  destinations: [],
  ...more,
})

/** A clock that only tests move. */
export class SetClock {
  now = Date.UTC(2030, 0, 1)
  readonly read = (): Date => new Date(this.now)

  pass(seconds: number): void {
    this.now += seconds * 1000
  }
}

const masterKey = Buffer.alloc(32, 7)

export const keyBox = (bytes: Buffer = masterKey): SecretBox =>
  new SecretBox(async () => [{ id: hash('sha256', bytes, 'hex').slice(0, 12), key: createSecretKey(bytes) }], keyOwners)

export interface RingsOptions {
  readonly store: KeyStore
  readonly clock: SetClock
  readonly given?: Map<string, KeyObject | Error>
  readonly issuers?: readonly TokenIssuer[]
  readonly log?: Logger
  /** Collects rows of the audit. */
  readonly rows?: AuditEntry[]
  readonly custodian?: RingParts['custodian']
}

/** The rings of one gateway. */
export function tokenKeyRings({
  store,
  clock,
  given = new Map(),
  issuers,
  log,
  rows,
  custodian,
}: RingsOptions): TokenKeyRings {
  const rings = new TokenKeyRings({
    store,
    audit: {
      append: async (added) => {
        rows?.push(...added)
      },
    },
    ...(custodian === undefined ? {} : { custodian }),
    box: keyBox(),
    clock: clock.read,
    log: log ?? silentLogger,
    givenKey: async (name) => {
      const key = given.get(name)
      if (key instanceof Error) throw key
      return key
    },
  })
  rings.configure(issuers ?? [tokenIssuer()])
  return rings
}
