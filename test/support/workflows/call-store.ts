import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { RunEffects } from '#workflows/store/run-commit.ts'
import type { RunStore } from '#workflows/store/run-store.ts'

/** A store that a test does not need. */
export const absentStore = <S extends object>(what: string): S =>
  new Proxy({} as S, {
    get: () => async () => {
      throw new Error(`no ${what} in this test`)
    },
  })

/** What others see of a class. */
export type Public<S> = Pick<S, keyof S>

/** A service with the test's methods; the others throw. */
export const fakeService = <S extends object>(what: string, given: Partial<Public<S>>): S =>
  new Proxy(absentStore<S>(what), {
    get: (absent, name) => {
      const found: unknown = Reflect.get(given, name)
      return typeof found === 'function' ? found.bind(given) : (found ?? Reflect.get(absent, name))
    },
  })

/** Knows only the stored part of runs that are executed within their call. */
export const callStore = (append: (rows: readonly AuditEntry[]) => Promise<void>): RunStore => {
  const write = async ({ audit = [] }: RunEffects): Promise<void> => {
    if (audit.length > 0) await append(audit)
  }
  const known: Partial<RunStore> = {
    start: async ({ state }, { effects = {} } = {}) => {
      if (state?.state !== 'running') throw new Error('no stored runs in this test')
      await write(effects)
      return { kind: 'started' }
    },
    commit: async ({ next, effects }) => {
      await write(effects)
      return next.state
    },
    record: write,
    renew: async () => true,
  }
  const absent = absentStore<RunStore>('stored runs')
  return new Proxy(absent, { get: (_, name: keyof RunStore) => known[name] ?? absent[name] })
}
