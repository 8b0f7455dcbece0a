import type { MappedValue, MappingSource } from '#identity/mapping/mapped-value.ts'
import type { Closable } from '#kernel/scope.ts'
import type { AttributePlace } from '#sdk/flow.ts'
import type { ModuleHost } from '#sdk/host.ts'

export const sourceTypes = ['user', 'static', 'composite', 'custom'] as const
export type SourceType = (typeof sourceTypes)[number]

/** A list of mapping rules, parsed: which attributes it reads and produces, and how to make it work. */
export interface PreparedMapping {
  readonly produces: readonly AttributePlace[]
  readonly reads: readonly AttributePlace[]
  /** A custom mapper may read anything. */
  readonly opaque: boolean
  create(host: ModuleHost): Promise<Mapping>
}

export interface Mapping extends Closable {
  /** In the order of the rules; attributes without a value are left out. */
  apply(source: MappingSource): Promise<ReadonlyMap<string, MappedValue>>
}
