import type { AuditEntry } from '#domain/audit.ts'
import { newRecoveryCodes, recoveryCodeHash } from '#engine/second-factors/recovery-codes.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { entryOf } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId, secretHash } from '#kernel/ids.ts'
import {
  type FactorAdded,
  type FactorChange,
  type FactorOwner,
  maxFactors,
  type NewSecondFactor,
  type SecondFactor,
  type SecondFactorAccess,
  secondFactorKinds,
} from '#sdk/second-factors.ts'
import type { SecondFactorStore, StoredFactor } from '#storage/second-factor-store.ts'

export interface SecondFactorParts {
  readonly store: SecondFactorStore
  readonly secrets: SecretBox
  readonly clock: Clock
}

/** Seals what is secret, and writes down every change. */
export class SecondFactors implements SecondFactorAccess {
  readonly #parts: SecondFactorParts

  constructor(parts: SecondFactorParts) {
    this.#parts = parts
  }

  async of(owner: FactorOwner): Promise<readonly SecondFactor[]> {
    const stored = await this.#parts.store.ofOwner(await this.#keyOf(owner))
    const opened = await Promise.all(stored.map((factor) => this.#open(factor)))
    return opened.flatMap((factor) => factor ?? [])
  }

  async add(
    owner: FactorOwner,
    factor: NewSecondFactor,
    { requestId, onlyAsFirst = false }: FactorChange & { readonly onlyAsFirst?: boolean },
  ): Promise<FactorAdded> {
    const { store, secrets } = this.#parts
    const key = await this.#keyOf(owner)
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

  async use(owner: FactorOwner, { id, counter }: Pick<SecondFactor, 'id' | 'counter'>, next: number): Promise<boolean> {
    const key = await this.#keyOf(owner)
    return this.#parts.store.use({ id, owner: key, ownerName: nameKey(owner) }, counter, next)
  }

  async rename(owner: FactorOwner, id: string, name: string): Promise<boolean> {
    return this.#parts.store.rename(id, await this.#keyOf(owner), name)
  }

  async remove(owner: FactorOwner, id: string, { requestId }: FactorChange): Promise<boolean> {
    const { store } = this.#parts
    const key = await this.#keyOf(owner)
    const known = (await store.ofOwner(key)).find((factor) => factor.id === id)
    if (known === undefined) return false
    return store.remove(id, key, [this.#row(owner, 'delete', `${known.kind} "${known.name}"`, requestId)])
  }

  async recoveryCodes(owner: FactorOwner): Promise<number> {
    return this.#parts.store.recoveryCodes(await this.#keyOf(owner))
  }

  async renewRecoveryCodes(owner: FactorOwner, { requestId }: FactorChange): Promise<readonly string[] | undefined> {
    const key = await this.#keyOf(owner)
    const codes = newRecoveryCodes()
    const hashes = codes.flatMap((code) => recoveryCodeHash(key, code) ?? [])
    const audit = [this.#row(owner, 'replace', 'recovery codes', requestId)]
    return (await this.#parts.store.replaceRecoveryCodes(key, hashes, audit)) ? codes : undefined
  }

  async useRecoveryCode(owner: FactorOwner, code: string, { requestId }: FactorChange): Promise<boolean> {
    const key = await this.#keyOf(owner)
    // The second is that of a code from before identities.
    const hashes = [key, nameKey(owner)].flatMap((part) => recoveryCodeHash(part, code) ?? [])
    const audit = [this.#row(owner, 'delete', 'a recovery code', requestId)]
    for (const hash of hashes) if (await this.#parts.store.useRecoveryCode(key, hash, audit)) return true
    return false
  }

  /**
   * The key of the owner's rows, after those that are stored under the name only were given to the identity. A caller
   * without a directory entry doesn't get them, but must use them: the name doesn't say which issuer's user they belong to.
   */
  async #keyOf(owner: FactorOwner): Promise<string> {
    const { store } = this.#parts
    const [key, former] = [secretHash(owner.identity), nameKey(owner)]
    const isFormer = (await store.ofOwner(key)).length === 0 && (await store.ofOwner(former)).length > 0
    if (!isFormer) return key
    if (entryOf(owner.identity) === undefined) return former
    await store.adopt(former, key)
    return key
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

/** Of bounded length, however long the name is. */
export const nameKey = ({ dn }: Pick<FactorOwner, 'dn'>): string => secretHash(dn.key)
