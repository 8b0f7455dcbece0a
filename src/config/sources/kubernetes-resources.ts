import { groups, type Kind, kinds } from '#config/kinds.ts'

/** How a cluster's API serves the objects of one kind. */
export interface ConfigResource {
  readonly kind: Kind
  readonly group: string
  /** The one that is stored and watched: the newest, since the API server gives every object in it. */
  readonly version: string
  readonly plural: string
  readonly singular: string
}

/** The predecessor's names, where they are not those of the kind in small letters. */
const singularNames: Readonly<Record<string, string>> = {
  AuthenticationMechanism: 'authmech',
  AuthenticationChain: 'authchain',
  CustomAuthorization: 'customaz',
}

/** In a cluster there is the predecessor's group only: two groups would be two sets of objects. */
export const configGroup = groups[0]

export const configResources: readonly ConfigResource[] = kinds.map((kind) => {
  const singular = singularNames[kind.kind] ?? kind.kind.toLowerCase()
  return {
    kind,
    group: configGroup,
    version: kind.versions.at(-1) ?? 'v1',
    plural: `${singular}s`,
    singular,
  }
})
