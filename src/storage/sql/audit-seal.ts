import { createHmac, timingSafeEqual } from 'node:crypto'
import type { AuditAnchor } from '#domain/audit.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditKey } from '#storage/audit-store.ts'

export const chainColumns = [
  'chain',
  'seq',
  'hash',
  'base_seq',
  'base_hash',
  'sealed_seq',
  'sealed_at',
  'broken_seq',
  'key_id',
  'mac',
] as const

/** A row of `audit_chains`: the head of a chain, its base, and the MAC over both. */
export interface ChainState {
  readonly chain: number
  /** Number and hash of the last record. */
  readonly seq: number
  readonly hash: string
  /** Number and hash of the last record that was pruned. */
  readonly base_seq: number
  readonly base_hash: string
  /** The last record from before the chain was sealed, and when it was sealed. Null in a chain that never was. */
  readonly sealed_seq: number | null
  readonly sealed_at: number | null
  /** The last record of a head that was found forged, until an operator accepts it. */
  readonly broken_seq: number | null
  readonly key_id: string | null
  readonly mac: string | null
}

/** `no key`: the chain is sealed with a key that this process does not have. */
export type Authenticity = 'sealed' | 'unsealed' | 'forged' | 'no key'

/**
 * Authenticates heads and bases of chains by HMAC-SHA-256. A chain's hashes already bind each record to the next, so the
 * MAC over its two ends covers every record. The first key signs, all of them verify.
 */
export class AuditSeal {
  readonly #keys: ReadonlyMap<string, AuditKey>
  readonly #first: AuditKey
  /** What this process signed last, by chain: mostly what it reads next. */
  readonly #known = new Map<number, string>()
  /** Set once all chains are sealed: from then on a head without a MAC is a forged one. */
  isRequired = false

  constructor(keys: readonly [AuditKey, ...AuditKey[]]) {
    this.#first = keys[0]
    this.#keys = new Map(keys.map((key) => [key.id, key]))
  }

  sign(state: Omit<ChainState, 'key_id' | 'mac'>): ChainState {
    const text = chainText(state)
    const mac = macOf(this.#first, text)
    this.#known.set(state.chain, `${text} ${this.#first.id} ${mac}`)
    return { ...state, key_id: this.#first.id, mac }
  }

  check(state: ChainState): Authenticity {
    const { chain, key_id, mac } = state
    if (mac === null || key_id === null) return 'unsealed'
    const text = chainText(state)
    if (this.#known.get(chain) === `${text} ${key_id} ${mac}`) return 'sealed'
    const key = this.#keys.get(key_id)
    if (key === undefined) return 'no key'
    return isSame(macOf(key, text), mac) ? 'sealed' : 'forged'
  }

  /** Whether the key that signs now signed this state. */
  isCurrent({ key_id }: ChainState): boolean {
    return key_id === this.#first.id
  }

  signAnchor(anchor: Omit<AuditAnchor, 'key' | 'mac'>): AuditAnchor {
    return { ...anchor, key: this.#first.id, mac: macOf(this.#first, anchorText(anchor)) }
  }

  checkAnchor(anchor: AuditAnchor): Exclude<Authenticity, 'unsealed'> {
    const key = this.#keys.get(anchor.key)
    if (key === undefined) return 'no key'
    return isSame(macOf(key, anchorText(anchor)), anchor.mac) ? 'sealed' : 'forged'
  }
}

/** The same for a process that may have no keys. */
export function authenticity(seal: AuditSeal | undefined, state: ChainState): Authenticity {
  if (seal !== undefined) return seal.check(state)
  return state.mac === null ? 'unsealed' : 'no key'
}

export function missingKey(keyId: string | null): GatewayError {
  return new GatewayError(
    'INTERNAL',
    `the audit is sealed with key ${keyId}, which is not available here: set GATEHOUSE_AUDIT_KEY or GATEHOUSE_SECRET_KEY as the gateway that sealed it has it, or give its data folder`,
  )
}

/** Numbers and base64url texts only, so no two states read alike. */
function chainText(s: Omit<ChainState, 'key_id' | 'mac'>): string {
  return `gatehouse audit chain 1 ${s.chain} ${s.seq} ${s.hash} ${s.base_seq} ${s.base_hash} ${s.sealed_seq} ${s.sealed_at} ${s.broken_seq}`
}

function anchorText({ time, heads }: Pick<AuditAnchor, 'time' | 'heads'>): string {
  const listed = heads.map(({ chain, number, hash }) => `${chain} ${number} ${hash}`)
  return `gatehouse audit anchor 1 ${time} ${listed.join(' ')}`
}

const macOf = ({ key }: AuditKey, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
