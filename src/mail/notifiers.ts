import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt, createEach } from '#config/configuration/create-at.ts'
import type { Scope } from '#kernel/scope.ts'
import type { HostFor, ModuleHost } from '#sdk/host/host.ts'
import { isDefaultNotifier, type Notifier } from '#sdk/notifier/notifier.ts'

/** The Notifiers of one configuration. */
export interface Notifiers {
  readonly isEmpty: boolean
  /** Without a name the default one; undefined if there is none. */
  find(name: string | undefined): Notifier | undefined
}

export async function createNotifiers(
  { notifiers: configs, setAside = [] }: Pick<Configuration, 'notifiers' | 'setAside'>,
  host: HostFor<ModuleHost>,
  scope: Scope,
): Promise<Notifiers> {
  const created = new Map<string, Notifier>()
  await createEach(configs, async ([name, { notifier, at }]) => {
    const create = () => notifier.create(host(name, notifier.className, at))
    created.set(name, scope.own(await createAt(at, create)))
  })
  // A Notifier that is set aside still counts, so that another one does not become the default.
  const names = [...created.keys(), ...setAside.flatMap(({ kind, name }) => (kind === 'Notifier' ? [name] : []))]
  return {
    isEmpty: created.size === 0,
    find: (name) => created.get(name ?? names.find((one) => isDefaultNotifier(one, names)) ?? ''),
  }
}
