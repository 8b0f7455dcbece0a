import type { Identity } from '#identity/identity.ts'
import { type Session, type SessionStore, sessionExpiry } from '#storage/session-store.ts'

/** Sessions in a map, for tests of what stands on the store. */
export function memorySessionStore(): SessionStore & { readonly rows: Map<string, Session> } {
  const rows = new Map<string, Session>()
  const marks = new Map<string, Set<string>>()
  const live = (id: string, now: Date) => {
    const session = rows.get(id)
    return session !== undefined && sessionExpiry(session) > now ? session : undefined
  }
  const remove = (which: (session: Session) => boolean): number => {
    const doomed = [...rows.values()].filter(which)
    for (const { id } of doomed) rows.delete(id)
    return doomed.length
  }
  const isOf = (owner: Identity) => (session: Session) => session.owner === owner
  return {
    rows,
    create: async (session, replaces) => {
      if (replaces !== undefined) rows.delete(replaces)
      rows.set(session.id, session)
    },
    find: async (id, now) => live(id, now),
    touch: async (session, now) => void rows.set(session.id, { ...session, touched: now }),
    update: async (id, now, change) => {
      const session = live(id, now)
      if (session === undefined) return undefined
      const changed = { ...session, ...change(session) }
      rows.set(id, changed)
      return changed
    },
    delete: async (id) => rows.delete(id),
    findPublic: async (publicId, now) =>
      [...rows.values()].find((session) => session.publicId === publicId && live(session.id, now) !== undefined),
    ofOwner: async (owner, now) =>
      [...rows.values()]
        .filter((session) => isOf(owner)(session) && live(session.id, now) !== undefined)
        .sort((a, b) => b.created.getTime() - a.created.getTime()),
    deletePublic: async (owner, publicId) =>
      remove((session) => isOf(owner)(session) && session.publicId === publicId) > 0,
    deleteOfOwner: async (owner, except) => remove((session) => isOf(owner)(session) && session.publicId !== except),
    mark: async (publicId, mark) => void marks.set(mark, (marks.get(mark) ?? new Set()).add(publicId)),
    deleteMarked: async (mark) => remove((session) => marks.get(mark)?.has(session.publicId) ?? false),
    deleteExpired: async () => 0,
  }
}
