import type { AuditEntry } from '#domain/audit.ts'
import { SecondFactors } from '#engine/second-factors/second-factors.ts'
import { systemClock } from '#kernel/clock.ts'
import type { SecondFactorStore, StoredFactor } from '#storage/second-factor-store.ts'
import { fakeSecretBox } from '#testing/fake-login-services.ts'

/** Second factors in memory, as the engine gives them to modules, and what was written into the audit. */
export function memorySecondFactors(): SecondFactors & { readonly audited: AuditEntry[] } {
  const audited: AuditEntry[] = []
  const store = memorySecondFactorStore(audited)
  const factors = new SecondFactors({ store, secrets: fakeSecretBox('second factor'), clock: systemClock })
  return Object.assign(factors, { audited })
}

export function memorySecondFactorStore(audited: AuditEntry[] = []): SecondFactorStore {
  const rows: (StoredFactor & { ownerName?: string | undefined })[] = []
  const codes = new Map<string, Set<string>>()
  const codesOf = (owner: string): Set<string> => codes.get(owner) ?? new Set()
  const find = (id: string, owner: string): number => rows.findIndex((row) => row.id === id && row.owner === owner)
  const change = (at: number, more: Partial<(typeof rows)[number]>): boolean => {
    const row = rows[at]
    if (row === undefined) return false
    rows[at] = { ...row, ...more }
    return true
  }
  const own = (owner: string) => rows.filter((row) => row.owner === owner)
  const takeName = (owner: string, name: string): void => {
    for (const row of rows) {
      if (row.owner === owner) row.ownerName = name
      else if (row.ownerName === name) row.ownerName = undefined
    }
  }
  return {
    ofOwner: async (owner) => own(owner),
    add: async (factor, limit, hashes, audit) => {
      if (rows.some(({ id }) => id === factor.id) || own(factor.owner).length >= limit) return 'refused'
      rows.push({ ...factor, created: new Date(), lastUsed: undefined })
      takeName(factor.owner, factor.ownerName)
      audited.push(...audit)
      if (codesOf(factor.owner).size > 0) return 'added'
      codes.set(factor.owner, new Set(hashes))
      return 'added with codes'
    },
    adopt: async (from, to) => {
      if (own(to).length > 0) return
      for (const [at, row] of rows.entries()) if (row.owner === from) change(at, { owner: to, ownerName: from })
      codes.set(to, codesOf(from))
      codes.delete(from)
    },
    use: async ({ id, owner, ownerName }, from, to) => {
      const at = find(id, owner)
      if (rows[at]?.counter !== from) return false
      takeName(owner, ownerName)
      return change(at, { counter: to, lastUsed: new Date(), ownerName })
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
    removeAllOfName: async (ownerName, audit) => {
      const gone = rows.filter((row) => row.owner === ownerName || row.ownerName === ownerName)
      for (const row of gone) {
        rows.splice(rows.indexOf(row), 1)
        codes.delete(row.owner)
      }
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
