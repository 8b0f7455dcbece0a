import { randomBytes } from 'node:crypto'
import type { Subject } from '#identity/subject.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId, secretHash } from '#kernel/ids.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { OperatorChange } from '#sdk/auth/operator-change.ts'
import { type NewSecondFactor, type SecondFactor, secondFactorKinds } from './second-factor.ts'
import type { SecondFactorStore, StoredFactor } from './second-factor-store.ts'

/** The owner of a factor, by identity: a user keeps it under a new login, and no one gets it with an old one. */
export type FactorOwner = Pick<Subject, 'identity' | 'dn' | 'uid'>

/** The result of adding a second factor. */
type FactorAdded =
  | { readonly added: false }
  /** `recoveryCodes` are new ones, for a user who had none; they are returned only once. */
  | { readonly added: true; readonly recoveryCodes: readonly string[] | undefined }

/** The request that causes a change, for the audit. */
interface FactorChange {
  readonly requestId: string
}

/** How many factors one user may have. */
export const maxFactors = 20

export interface SecondFactorParts {
  readonly store: SecondFactorStore
  readonly secrets: SecretBox
  readonly clock: Clock
}

/**
 * What users prove their identity with in addition to a password. Shared by all gateways of a database. Encrypts the
 * secrets and audits every change.
 */
export class SecondFactors {
  readonly #parts: SecondFactorParts

  constructor(parts: SecondFactorParts) {
    this.#parts = parts
  }

  /** Earliest first. */
  async of(owner: FactorOwner): Promise<readonly SecondFactor[]> {
    const stored = await this.#parts.store.ofOwner(ownerKey(owner))
    const opened = await Promise.all(stored.map((factor) => this.#open(factor)))
    return opened.flatMap((factor) => factor ?? [])
  }

  /** Refused beyond `maxFactors`. `onlyAsFirst`: refused for a user who has one, also for concurrent calls. */
  async add(
    owner: FactorOwner,
    factor: NewSecondFactor,
    { requestId, onlyAsFirst = false }: FactorChange & { readonly onlyAsFirst?: boolean },
  ): Promise<FactorAdded> {
    const { store, secrets } = this.#parts
    const key = ownerKey(owner)
    const { id, kind, name, counter, secret } = factor
    const codes = newRecoveryCodes()
    const hashes = codes.flatMap((code) => recoveryCodeHash(key, code) ?? [])
    const data = await secrets.seal(secret, id)
    const audit = [this.#row(owner, 'add', `${kind} "${name}"`, requestId)]
    const limit = onlyAsFirst ? 1 : maxFactors
    const outcome = await store.add(
      { id, owner: key, ownerName: nameKey(owner), kind, name, counter, data },
      limit,
      hashes,
      audit,
    )
    if (outcome === 'refused') return { added: false }
    return { added: true, recoveryCodes: outcome === 'added with codes' ? codes : undefined }
  }

  /** Moves the counter. False if another request was first. */
  async use(owner: FactorOwner, { id, counter }: Pick<SecondFactor, 'id' | 'counter'>, next: number): Promise<boolean> {
    const key = ownerKey(owner)
    return this.#parts.store.use({ id, owner: key, ownerName: nameKey(owner) }, counter, next)
  }

  async rename(owner: FactorOwner, id: string, name: string): Promise<boolean> {
    return this.#parts.store.rename(id, ownerKey(owner), name)
  }

  /** The recovery codes are deleted with the last factor. */
  async remove(owner: FactorOwner, id: string, { requestId }: FactorChange): Promise<boolean> {
    const { store } = this.#parts
    const key = ownerKey(owner)
    const known = (await store.ofOwner(key)).find((factor) => factor.id === id)
    if (known === undefined) return false
    return store.remove(id, key, [this.#row(owner, 'delete', `${known.kind} "${known.name}"`, requestId)])
  }

  /** Removes all factors and recovery codes, with an audit entry; returns how many factors. */
  async reset(owner: FactorOwner, { by, reason, requestId }: OperatorChange): Promise<number> {
    const row = { ...this.#row(owner, 'delete', 'all', requestId), requestor: by, reason }
    return this.#parts.store.removeAll(ownerKey(owner), [row])
  }

  /** How many recovery codes are left. */
  async recoveryCodes(owner: FactorOwner): Promise<number> {
    return this.#parts.store.recoveryCodes(ownerKey(owner))
  }

  /** Replaces all codes with new ones; undefined for a user without a factor. */
  async renewRecoveryCodes(owner: FactorOwner, { requestId }: FactorChange): Promise<readonly string[] | undefined> {
    const key = ownerKey(owner)
    const codes = newRecoveryCodes()
    const hashes = codes.flatMap((code) => recoveryCodeHash(key, code) ?? [])
    const audit = [this.#row(owner, 'replace', 'recovery codes', requestId)]
    return (await this.#parts.store.replaceRecoveryCodes(key, hashes, audit)) ? codes : undefined
  }

  /** True once for each code. Ignores spaces, dashes and letter case. */
  async useRecoveryCode(owner: FactorOwner, code: string, { requestId }: FactorChange): Promise<boolean> {
    const key = ownerKey(owner)
    const hash = recoveryCodeHash(key, code)
    if (hash === undefined) return false
    return this.#parts.store.useRecoveryCode(key, hash, [this.#row(owner, 'delete', 'a recovery code', requestId)])
  }

  async #open({ owner: _owner, data, kind, ...factor }: StoredFactor): Promise<SecondFactor | undefined> {
    const known = secondFactorKinds.find((candidate) => candidate === kind)
    if (known === undefined) return undefined
    return { ...factor, kind: known, secret: await this.#parts.secrets.open(data, factor.id) }
  }

  #row({ uid }: FactorOwner, action: AuditEntry['action'], what: string, requestId: string): AuditEntry {
    return {
      id: newId(),
      time: this.#parts.clock(),
      requestor: uid,
      subject: uid,
      workflow: { id: '', name: '' },
      target: 'gatehouse',
      kind: 'attribute',
      action,
      attribute: 'second factor',
      value: what,
      requestId,
    }
  }
}

const ownerKey = ({ identity }: FactorOwner): string => secretHash(identity)

/** Of bounded length for any name. */
export const nameKey = ({ dn }: Pick<FactorOwner, 'dn'>): string => secretHash(dn.key)

const howMany = 10
/** 32 letters and digits that are easy to distinguish, five bits each. */
const alphabet = 'abcdefghjkmnpqrstuvwxyz023456789'
const length = 16

/** Codes of 80 bits, so that their hashes reveal nothing, in groups that are easy to copy. */
const newRecoveryCodes = (): readonly string[] => Array.from({ length: howMany }, newCode)

function newCode(): string {
  const letters = Array.from(randomBytes(length), (byte) => alphabet[byte & 31] ?? '').join('')
  return letters.replaceAll(/(.{4})(?=.)/g, '$1-')
}

/** The stored form of a code; undefined for a text that can't be one. */
function recoveryCodeHash(owner: string, written: string): string | undefined {
  if (written.length > 64) return undefined
  const code = written.toLowerCase().replaceAll(/[\s-]/g, '')
  if (code.length !== length || [...code].some((letter) => !alphabet.includes(letter))) return undefined
  return secretHash(JSON.stringify(['recovery code', owner, code]))
}
