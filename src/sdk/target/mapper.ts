import type { MappedValue, MappingSource } from '#identity/mapping/mapped-value.ts'
import type { Subject } from '#identity/subject.ts'
import type { Closable } from '#kernel/scope.ts'
import type { LookupHost } from './target.ts'

/** A mapper with its parameters, before it has a host. */
export interface MapperInstance {
  /** Attributes it reads, for the data-flow check; undefined if they are not known before it runs. */
  readonly reads: readonly string[] | undefined
  /** The parts that it reads of a complex attribute; absent if it may read all. */
  readonly parts?: readonly string[]
  create(host: LookupHost): Mapper | Promise<Mapper>
}

/** Makes the value of an attribute from those of a user. */
export interface Mapper {
  /** `attribute` is the name being produced. Returns an empty list if there is no value. */
  map(source: MappingSource, attribute: string): MappedValue | Promise<MappedValue>
  close?(): Promise<void> | void
}

/** A value to choose, and its display text. */
export interface SourceItem {
  readonly name: string
  readonly value: string
}

interface SourceQuery {
  /** Absent for the whole list. Otherwise plain text, not empty and of bounded length. */
  readonly search?: string
  /** The maximum number of items. */
  readonly limit: number
  /** The user who sees the list; level 0 is an anonymous one. */
  readonly subject: Subject
}

/** Provides the choices of a form field. Every result is bounded in size and time. */
export interface ValueSource extends Closable {
  list(query: SourceQuery): Promise<readonly SourceItem[]>
  /** Undefined if the value may be used; otherwise what is wrong with it, for people. */
  check(value: string, subject: Subject): Promise<string | undefined>
}

/** A value source with a parsed configuration, ready to be created. */
export interface PreparedValueSource {
  readonly className: string
  create(host: LookupHost): Promise<ValueSource>
}

/** The message for a value that a source does not have, unless its settings have another one. */
export const notInSource = 'has a value that cannot be used'
