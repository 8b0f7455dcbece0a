import type { KeyObject } from 'node:crypto'
import type { DirectoryEntry, DirectorySearch } from '#identity/directory.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Subject } from '#identity/subject.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { Rule, RuleDecision } from '#sdk/rule.ts'
import type { Target } from '#sdk/target.ts'

export interface FakeHostOptions {
  /** What time it is, in milliseconds; the test moves it. */
  readonly now?: () => number
  readonly entries?: readonly DirectoryEntry[]
  readonly targets?: Readonly<Record<string, Target>>
  readonly publicKeys?: Readonly<Record<string, KeyObject>>
  readonly signingKey?: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  readonly authorize?: (subject: Subject, rules: readonly Rule[]) => RuleDecision
}

export interface FakeModuleHost extends ModuleHost {
  readonly searches: DirectorySearch[]
}

const missing = (what: string): never => {
  throw new Error(`the fake host has no ${what}`)
}

/** A host that holds what the test gives it, and remembers the directory searches. */
export function fakeModuleHost(options: FakeHostOptions = {}): FakeModuleHost {
  const searches: DirectorySearch[] = []
  return {
    searches,
    name: 'test',
    javaScript: () => undefined,
    log: silentLogger,
    clock: () => new Date(options.now?.() ?? Date.now()),
    targets: { get: (name) => options.targets?.[name] ?? missing(`target ${name}`) },
    workflows: { run: async () => missing('workflows') },
    directory: {
      async search(search) {
        searches.push(search)
        const found = (options.entries ?? []).filter(
          ({ dn, attributes }) => dn.isWithin(search.base) && matches(search.filter, attributes),
        )
        return found.slice(0, search.limit)
      },
      isMember: async () => false,
    },
    keys: {
      publicKey: async (name) => options.publicKeys?.[name],
      signingKey: async () => options.signingKey ?? missing('signing key'),
    },
    authorize: async (subject, rules) => options.authorize?.(subject, rules) ?? { allowed: false, verdicts: [] },
    openUserDirectory: async () => missing('user directory'),
  }
}
