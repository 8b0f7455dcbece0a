import type { LoginFailureStore } from '#storage/login-failure-store.ts'
import type { Login, LoginStore } from '#storage/login-store.ts'

/** Logins in a map, for tests of what stands on the store. */
export function memoryLoginStore(): LoginStore & { readonly rows: Map<string, Login> } {
  const rows = new Map<string, Login>()
  const isAt = (id: string, version: number, now: Date): boolean => {
    const login = rows.get(id)
    return login !== undefined && login.version === version && login.expires > now
  }
  return {
    rows,
    create: async (login) => void rows.set(login.id, login),
    find: async ({ id, browser, host }, now) => {
      const login = rows.get(id)
      return login?.browser === browser && login.host === host && login.expires > now ? login : undefined
    },
    advance: async (id, version, data, now) => {
      const login = rows.get(id)
      if (login === undefined || !isAt(id, version, now)) return false
      rows.set(id, { ...login, data, version: version + 1 })
      return true
    },
    finish: async (id, version, now) => isAt(id, version, now) && rows.delete(id),
    knows: async (browser, now) => [...rows.values()].some((one) => one.browser === browser && one.expires > now),
    deleteExpired: async () => 0,
  }
}

/** Failures in a map. */
export function memoryFailureStore(): LoginFailureStore {
  const rows = new Map<string, { failures: number; locked: number; forget: number }>()
  return {
    async count(key, policy, now) {
      const time = now.getTime()
      const known = rows.get(key) ?? { failures: 0, locked: 0, forget: 0 }
      if (known.locked > time) return { failures: known.failures, lockedUntil: new Date(known.locked), refused: true }
      const failures = (known.forget > time ? known.failures : 0) + 1
      const locked = time + policy.lockMillis(failures)
      rows.set(key, { failures, locked, forget: locked + policy.forgetMillis })
      return { failures, lockedUntil: new Date(locked), refused: false }
    },
    clear: async (key) => void rows.delete(key),
    forgive: async (key) => {
      const known = rows.get(key)
      if (known !== undefined) known.failures--
    },
    deleteForgotten: async () => 0,
  }
}
