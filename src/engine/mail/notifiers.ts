import type { Scope } from '#kernel/scope.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { type Notifier, standsForDefault } from '#sdk/notifier/notifier.ts'

/** The Notifiers of one configuration. */
export interface Notifiers {
  readonly isEmpty: boolean
  /** Without a name the default one; undefined when there is none. */
  find(name: string | undefined): Notifier | undefined
}

export async function createNotifiers(
  { notifiers: configs }: Pick<Configuration, 'notifiers'>,
  hostFor: (name: string, className: string, at: string) => ModuleHost,
  scope: Scope,
): Promise<Notifiers> {
  const created = new Map<string, Notifier>()
  for (const [name, { notifier, at }] of configs) {
    try {
      created.set(name, scope.own(await notifier.create(hostFor(name, notifier.className, at))))
    } catch (cause) {
      throw new Error(`${at}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    }
  }
  const names = [...created.keys()]
  return {
    isEmpty: created.size === 0,
    find: (name) => created.get(name ?? names.find((one) => standsForDefault(one, names)) ?? ''),
  }
}
