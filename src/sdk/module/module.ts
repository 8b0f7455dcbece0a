import type { Dn } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { ParameterTable } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** The names of groups on an LDAP server. */
export interface GroupNames {
  /** The branch of the server. */
  readonly base: Dn
  /** Whether names in `memberOf` below the branch appear below the suffix of the insert. */
  readonly isMoved: boolean
}

/** A module with a parsed configuration, ready to be created. */
export interface Prepared<T, H = ModuleHost> {
  readonly className: string
  /** For a target: whether it has lookups; undefined if that isn't known before it's created. */
  readonly lookups?: boolean | undefined
  /** For a target: whether it stores passwords; undefined if that isn't known before it's created. */
  readonly passwords?: boolean | undefined
  /** For a target: the attributes of users that it can store, in lower case, if its configuration lists them. */
  readonly storable?: ReadonlySet<string> | undefined
  /** For a target of this name: the store of its users, which others may have too; absent if that isn't known. */
  readonly store?: ((name: string) => string) | undefined
  /** For an insert: where the names in `memberOf` are. Undefined if they are below its suffix only. */
  readonly groupNames?: GroupNames | undefined
  /** May do I/O; throws if it can't be used at all. An unreachable system is not such a case. */
  create(host: H): Promise<T>
}

/** A kind of filter, target and so on, as the catalog knows it by its class name. */
export interface ModuleOf<P> {
  readonly className: string
  readonly aliases: readonly string[]
  readonly parameters: ParameterTable
  prepare(params: Params, issues: Issues, context: ParseContext): P
}

/** A module that is prepared with nothing beyond what all of them have. */
export type Module<T, H = ModuleHost> = ModuleOf<Prepared<T, H>>

/** What its author writes. */
export interface ModuleDefinition<C, T, H = ModuleHost> {
  readonly className: string
  readonly aliases?: readonly string[]
  readonly parameters: ParameterTable
  /** Pure: no I/O, no clock. Reports every problem into `issues`. */
  parse(params: Params, issues: Issues, context: ParseContext): C
  create(config: C, host: H): T | Promise<T>
  /** See Prepared. */
  lookups?(config: C): boolean | undefined
  passwords?(config: C): boolean | undefined
  storable?(config: C): ReadonlySet<string> | undefined
  store?(config: C, name: string): string
  groupNames?(config: C): GroupNames | undefined
}

/** Describes a kind of object: its parameters, and how one is created. */
export function defineModule<C, T, H = ModuleHost>(definition: ModuleDefinition<C, T, H>): Module<T, H> {
  const { className, parameters } = definition
  return {
    className,
    aliases: definition.aliases ?? [],
    parameters,
    prepare: (params, issues, context) => {
      const config = definition.parse(params, issues, context)
      const lookups = definition.lookups?.(config)
      const passwords = definition.passwords?.(config)
      const storable = definition.storable?.(config)
      const store = definition.store?.bind(definition, config)
      const groupNames = definition.groupNames?.(config)
      return {
        className,
        lookups,
        passwords,
        storable,
        store,
        groupNames,
        create: async (host) => definition.create(config, host),
      }
    },
  }
}
