import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import { defineModule, type Module, type ModuleDefinition, type Prepared } from '#sdk/module/module.ts'

/** A value that may be chosen, and what is shown for it. */
export interface SourceItem {
  readonly name: string
  readonly value: string
}

export interface SourceQuery {
  /** Absent for the whole list; otherwise not empty, bounded in length, and to be taken as plain text. */
  readonly search?: string
  /** The most items that are wanted. */
  readonly limit: number
  /** Who asks; level 0 is nobody in particular. */
  readonly subject: Subject
}

/** Where the list of a form's field comes from. Every answer and every wait is bounded. */
export interface ValueSource extends Closable {
  list(query: SourceQuery): Promise<readonly SourceItem[]>
  /** Undefined when the value may be used; otherwise what is wrong with it, for people. */
  check(value: string, subject: Subject): Promise<string | undefined>
}

export type PreparedValueSource = Prepared<ValueSource>
export type ValueSourceModule = Module<ValueSource>

export const defineValueSource = <C>(definition: ModuleDefinition<C, ValueSource>): ValueSourceModule =>
  defineModule(definition)

/** What is said of a value that a source does not have, unless its settings say something else. */
export const notInSource = 'has a value that cannot be used'
