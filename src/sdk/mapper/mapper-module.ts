import type { Issues, Path } from '#kernel/issues.ts'
import { defineModule, type Module, type ModuleDefinition } from '#sdk/module/module.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { MapperInstance, ValueSource } from '#sdk/target/mapper.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** A kind of mapper, as the catalog lists it. */
export interface MapperModule {
  readonly className: string
  readonly aliases: readonly string[]
  /** `parameters` are the comma-separated texts after the `|` of the expression. Pure. */
  prepare(parameters: readonly string[], path: Path, issues: Issues, context: ParseContext): MapperInstance | undefined
}

/** Describes a kind of mapper. */
export const defineMapper = (module: MapperModule): MapperModule => module

/** A kind of value source, as the catalog lists it. */
export type ValueSourceModule = Module<ValueSource, LookupHost>

/** Describes a kind of value source. */
export const defineValueSource = <C>(definition: ModuleDefinition<C, ValueSource, LookupHost>): ValueSourceModule =>
  defineModule(definition)
