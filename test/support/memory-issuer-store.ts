import type { IssuerKey, IssuerRecord, IssuerStore, StoredIssuerRecord } from '#storage/issuer-store.ts'

const textOf = ({ issuer, model, id }: IssuerKey): string => JSON.stringify([issuer, model, id])

/** An IssuerStore in memory; `rows` is what a database would hold. */
export function memoryIssuerStore(): IssuerStore & { readonly rows: Map<string, StoredIssuerRecord> } {
  const rows = new Map<string, StoredIssuerRecord>()
  const remove = (goes: (row: StoredIssuerRecord) => boolean): number => {
    const gone = [...rows].filter(([, row]) => goes(row))
    for (const [key] of gone) rows.delete(key)
    return gone.length
  }
  return {
    rows,
    put: async (record: IssuerRecord, expected) => {
      const present = rows.get(textOf(record))
      const live = present !== undefined && (expected === undefined || present.expires > expected.now)
      if (expected !== undefined && (live ? present.version : 0) !== expected.version) return false
      const version = (present?.version ?? 0) + 1
      rows.set(textOf(record), { ...record, version, consumed: live ? present.consumed : undefined })
      return true
    },
    find: async (key, now) => {
      const row = rows.get(textOf(key))
      return row !== undefined && row.expires > now ? row : undefined
    },
    findByUserCode: async ({ issuer, model, userCode }, now) =>
      [...rows.values()].find(
        (row) => row.issuer === issuer && row.model === model && row.userCode === userCode && row.expires > now,
      ),
    consume: async (key, now) => {
      const row = rows.get(textOf(key))
      if (row === undefined || row.consumed !== undefined || row.expires <= now) return false
      rows.set(textOf(key), { ...row, consumed: now })
      return true
    },
    delete: async (key) => void rows.delete(textOf(key)),
    deleteOfGrant: async ({ issuer, model, grantId }) =>
      remove((row) => row.issuer === issuer && row.model === model && row.grantId === grantId),
    deleteExpired: async (now) => remove(({ expires }) => expires <= now),
  }
}
