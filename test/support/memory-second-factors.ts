import { SecondFactors } from '#engine/second-factors/second-factors.ts'
import { systemClock } from '#kernel/clock.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import type { SecondFactorStore, StoredFactor } from '#storage/second-factor-store.ts'
import { fakeSecretBox } from '#testing/fake-login-services.ts'

/** Second factors in memory, as the engine gives them to modules, and what was written into the audit. */
export function memorySecondFactors(): SecondFactors & { readonly audited: AuditRow[] } {
  const audited: AuditRow[] = []
  const store = memorySecondFactorStore(audited)
  const factors = new SecondFactors({ store, secrets: fakeSecretBox('second factor'), clock: systemClock })
  return Object.assign(factors, { audited })
}

export function memorySecondFactorStore(audited: AuditRow[] = []): SecondFactorStore {
  const rows: StoredFactor[] = []
  const codes = new Map<string, Set<string>>()
  const codesOf = (owner: string): Set<string> => codes.get(owner) ?? new Set()
  const find = (id: string, owner: string): number => rows.findIndex((row) => row.id === id && row.owner === owner)
  const change = (at: number, more: Partial<StoredFactor>): boolean => {
    const row = rows[at]
    if (row === undefined) return false
    rows[at] = { ...row, ...more }
    return true
  }
  const own = (owner: string): StoredFactor[] => rows.filter((row) => row.owner === owner)
  return {
    ofOwner: async (owner) => own(owner),
    add: async (factor, limit, hashes, audit) => {
      if (rows.some(({ id }) => id === factor.id) || own(factor.owner).length >= limit) return 'refused'
      rows.push({ ...factor, created: new Date(), lastUsed: undefined })
      audited.push(...audit)
      if (codesOf(factor.owner).size > 0) return 'added'
      codes.set(factor.owner, new Set(hashes))
      return 'added with codes'
    },
    use: async (id, owner, from, to) => {
      const at = find(id, owner)
      return rows[at]?.counter === from && change(at, { counter: to, lastUsed: new Date() })
    },
    rename: async (id, owner, name) => change(find(id, owner), { name }),
    remove: async (id, owner, audit) => {
      const at = find(id, owner)
      if (at < 0) return false
      rows.splice(at, 1)
      if (own(owner).length === 0) codes.delete(owner)
      audited.push(...audit)
      return true
    },
    removeAll: async (owner, audit) => {
      const gone = own(owner)
      for (const row of gone) rows.splice(rows.indexOf(row), 1)
      codes.delete(owner)
      audited.push(...audit)
      return gone.length
    },
    recoveryCodes: async (owner) => codesOf(owner).size,
    replaceRecoveryCodes: async (owner, hashes, audit) => {
      if (own(owner).length === 0) return false
      codes.set(owner, new Set(hashes))
      audited.push(...audit)
      return true
    },
    useRecoveryCode: async (owner, code, audit) => {
      if (!codesOf(owner).delete(code)) return false
      audited.push(...audit)
      return true
    },
  }
}
