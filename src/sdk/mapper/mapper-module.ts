import type { Issues, Path } from '#kernel/issues.ts'
import type { MapperInstance, ValueSource } from '#sdk/mapper/mapper.ts'
import { defineModule, type Module, type ModuleDefinition } from '#sdk/module/module.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { LookupHost } from '#sdk/target/target.ts'

export interface MapperModule {
  readonly className: string
  readonly aliases: readonly string[]
  /** `parameters` are the comma-separated texts after the `|` of the expression. Pure. */
  prepare(parameters: readonly string[], path: Path, issues: Issues, context: ParseContext): MapperInstance | undefined
}

export const defineMapper = (module: MapperModule): MapperModule => module

export type ValueSourceModule = Module<ValueSource, LookupHost>

export const defineValueSource = <C>(definition: ModuleDefinition<C, ValueSource, LookupHost>): ValueSourceModule =>
  defineModule(definition)
