import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { AuditLink } from '#kernel/audit-link.ts'
import { GatewayError } from '#kernel/errors.ts'

/** The heads of all chains that have records, at one time and signed. Keep them outside the database. */
export interface AuditAnchor {
  /** ISO 8601. */
  readonly time: string
  readonly heads: readonly AuditLink[]
  readonly key: string
  readonly mac: string
}

/** A 256-bit key that seals the audit, and the id by which a seal names it. */
export interface AuditKey {
  readonly id: string
  readonly key: KeyObject
}

/** A row of `audit_chains`: the head of a chain, its base, and the MAC over both. */
export interface ChainState {
  readonly chain: number
  /** Number and hash of the last record. */
  readonly seq: number
  readonly hash: string
  /** Number and hash of the last record that was pruned. */
  readonly baseSeq: number
  readonly baseHash: string
  /** The last record from before the chain was sealed, and when it was sealed. Null in a chain that never was. */
  readonly sealedSeq: number | null
  readonly sealedAt: number | null
  /** The last record of a head that was found forged, until an operator accepts it. */
  readonly brokenSeq: number | null
  readonly keyId: string | null
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
  /** The last state that this process signed, by chain: mostly what it reads next. */
  readonly #known = new Map<number, string>()
  /** Set once all chains are sealed: from then on a head without a MAC is forged. */
  isRequired = false

  constructor(keys: readonly [AuditKey, ...AuditKey[]]) {
    this.#first = keys[0]
    this.#keys = new Map(keys.map((key) => [key.id, key]))
  }

  sign(state: Omit<ChainState, 'keyId' | 'mac'>): ChainState {
    const text = chainText(state)
    const mac = macOf(this.#first, text)
    this.#known.set(state.chain, `${text} ${this.#first.id} ${mac}`)
    return { ...state, keyId: this.#first.id, mac }
  }

  check(state: ChainState): Authenticity {
    const { chain, keyId, mac } = state
    if (mac === null || keyId === null) return 'unsealed'
    const text = chainText(state)
    if (this.#known.get(chain) === `${text} ${keyId} ${mac}`) return 'sealed'
    const key = this.#keys.get(keyId)
    if (key === undefined) return 'no key'
    return isSame(macOf(key, text), mac) ? 'sealed' : 'forged'
  }

  /** Whether the current signing key signed this state. */
  isCurrent({ keyId }: ChainState): boolean {
    return keyId === this.#first.id
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

/** Numbers and base64url texts only, so no two states have the same text. */
function chainText(s: Omit<ChainState, 'keyId' | 'mac'>): string {
  return `gatehouse audit chain 1 ${s.chain} ${s.seq} ${s.hash} ${s.baseSeq} ${s.baseHash} ${s.sealedSeq} ${s.sealedAt} ${s.brokenSeq}`
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
