import type { MappedValue, MappingSource } from '#identity/mapping/mapped-value.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

/** A mapper with its parameters, before it has a host. */
export interface MapperInstance {
  /** Attributes it reads, for the data-flow check; undefined when that cannot be told. */
  readonly reads: readonly string[] | undefined
  create(host: ModuleHost): Mapper | Promise<Mapper>
}

export interface Mapper {
  /** `attribute` is the name being produced. Yields no values where there is nothing to say. */
  map(source: MappingSource, attribute: string): MappedValue | Promise<MappedValue>
  close?(): Promise<void> | void
}

export interface MapperModule {
  readonly className: string
  readonly aliases: readonly string[]
  /** `parameters` are the comma-separated texts behind the `|` of the expression. Pure. */
  prepare(parameters: readonly string[], path: Path, issues: Issues, context: ParseContext): MapperInstance | undefined
}

export const defineMapper = (module: MapperModule): MapperModule => module
