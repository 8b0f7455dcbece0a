import { trustNames } from '#config/build/issuer.ts'
import { issuersByName } from '#config/configuration/issuer.ts'
import { endpointName } from '#config/configuration/token-endpoint.ts'
import type { LoadState } from '#config/context/build-context.ts'
import type { ConfigDocument, Place } from '#config/context/config-document.ts'
import type { Draft, Reference } from '#config/context/draft.ts'
import { certificateIn } from '#config/context/secrets.ts'
import type { Sources } from '#config/sources/folder-documents.ts'
import type { ParsedFiles } from '#config/sources/parse.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import { defaultNotifier, isDefaultNotifier } from '#sdk/notifier/notifier.ts'
import { builtInNames } from './built-in-targets.ts'
import { endpointKind } from './set-aside.ts'

/** The names of the objects of one kind, valid or not. */
export const namesOf = (files: ParsedFiles, referredAs: ReferenceKind): Set<string> =>
  new Set(files.objects.flatMap(({ kind, name }) => (kind.referredAs === referredAs && name ? [name] : [])))

/** The documents of each name that others can refer to; none for a name of something that isn't an object. */
export type Providers = (
  kind: ReferenceKind,
  /** The references whose keys are looked up in secrets. */
  references?: readonly Reference[],
) => ReadonlyMap<string, readonly Place[]>

/** Names count even if the object is invalid: then what refers to it is set aside, but has no error. */
export function providersOf(
  files: ParsedFiles,
  objects: readonly { readonly kind: string; readonly value: unknown; readonly document: ConfigDocument }[],
  { draft, secrets, catalog, references: own }: LoadState,
  { keys }: Sources,
): Providers {
  const all = new Map<ReferenceKind, Map<string, Place[]>>()
  const add = (kind: ReferenceKind, name: string, ...documents: Place[]): void => {
    const names = all.get(kind) ?? new Map<string, Place[]>()
    all.set(kind, names)
    names.set(name, [...(names.get(name) ?? []), ...documents])
  }
  for (const { kind, name, document } of files.objects) {
    if (kind.referredAs === undefined || name === undefined) continue
    add(kind.referredAs, name, document)
    if (kind.referredAs === 'notifier') add('channel notifier', name, document)
  }
  for (const name of builtInNames(catalog)) add('target', name)
  const notifiers = [...(all.get('notifier') ?? [])]
  const names = notifiers.map(([name]) => name)
  for (const [name, documents] of notifiers) {
    if (isDefaultNotifier(name, names)) add('notifier', defaultNotifier, ...documents)
  }
  for (const { kind, value, document } of objects) {
    const spec = kind === 'Org' && isJsonObject(value) ? value['spec'] : undefined
    if (isJsonObject(spec) && typeof spec['uuid'] === 'string') add('org', spec['uuid'], document)
  }
  for (const { name, place, config } of draft.stsEndpoints) {
    if (name !== undefined) add(endpointKind, name, place)
    if (config !== undefined) add('endpoint of the token service', endpointName(config.endpoint), place)
  }
  const issuers = issuersByName(draft.issuers.map(({ config, document }) => ({ ...config, document })))
  for (const [issuer, { trusts, document }] of issuers) {
    add('identity provider', issuer, document)
    for (const trust of trusts) {
      const object = [...draft.trusts.values()].find((one) => one.trust.clientId === trust.clientId)
      for (const name of trustNames(issuer, trust)) {
        add('trust of an identity provider', name, document, ...(object === undefined ? [] : [object.document]))
      }
    }
  }
  return (kind, references = own) => {
    if (kind !== 'key' && kind !== 'password page') return all.get(kind) ?? new Map()
    const named = references.flatMap((reference) => (reference.kind === kind ? [reference.name] : []))
    if (kind === 'password page') return passwordPages(draft, named)
    const inSecrets = named.filter((name) => certificateIn(secrets, name) !== undefined)
    return new Map([...keys.keys(), ...inSecrets].map((name) => [name, []]))
  }
}

/** The page that each name means: that of the application with the name, or, with any other name, the only one. */
function passwordPages({ applications }: Draft, names: readonly string[]): Map<string, readonly ConfigDocument[]> {
  const pages = applications.filter(({ config }) =>
    config.urls.some(({ filters }) => filters.some(({ className }) => className === 'filters.Passwords')),
  )
  return new Map(
    names.flatMap((name) => {
      const page = pages.find(({ config }) => config.name === name) ?? (pages.length === 1 ? pages[0] : undefined)
      return page === undefined ? [] : [[name, [page.document]] as const]
    }),
  )
}
