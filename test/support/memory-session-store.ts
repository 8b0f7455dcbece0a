import { type Session, type SessionStore, sessionExpiry } from '#storage/session-store.ts'

/** Sessions in a map, for tests of what stands on the store. */
export function memorySessionStore(): SessionStore & { readonly rows: Map<string, Session> } {
  const rows = new Map<string, Session>()
  const live = (id: string, now: Date) => {
    const session = rows.get(id)
    return session !== undefined && sessionExpiry(session) > now ? session : undefined
  }
  return {
    rows,
    create: async (session) => void rows.set(session.id, session),
    find: async (id, now) => live(id, now),
    touch: async (session, now) => void rows.set(session.id, { ...session, touched: now }),
    update: async () => undefined,
    delete: async (id) => rows.delete(id),
    deleteOfUser: async () => 0,
    deleteExpired: async () => 0,
  }
}
