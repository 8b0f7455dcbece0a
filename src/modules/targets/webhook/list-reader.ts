import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { TargetRequest } from '#sdk/target.ts'
import type { ApiCaller } from './api-caller.ts'
import type { EntryReader } from './entry-reader.ts'
import type { Operation } from './operation.ts'
import type { RequestTemplate, SingleValues } from './request-template.ts'
import type { ListLimits } from './webhook-config.ts'

export interface List {
  readonly operation: Operation
  /** In place of the operation's own. */
  readonly template?: RequestTemplate
  readonly values: SingleValues
  readonly request?: TargetRequest | undefined
}

/** How many pages are asked for at most, whatever they hold. */
const maxPages = 10_000

/** Reads lists to their end. Throws BAD_REQUEST, `tooMany`, for one that is longer than is allowed. */
export class ListReader {
  readonly #caller: ApiCaller
  readonly #reader: EntryReader
  readonly #limits: ListLimits
  readonly #target: string

  constructor(caller: ApiCaller, reader: EntryReader, limits: ListLimits, target: string) {
    this.#target = target
    this.#caller = caller
    this.#reader = reader
    this.#limits = limits
  }

  /** Nothing for "there is none". */
  async readAll(list: List): Promise<JsonValue[]> {
    const { operation, template = operation.request } = list
    const paged = template.places.includes('offset') || template.places.includes('page')
    const byCursor = template.places.includes('cursor')
    const items: JsonValue[] = []
    const cursors = new Set<string>()
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const answer = await this.#page(list, { offset: items.length, page, cursor })
      if (answer === undefined) return items
      const found = this.#reader.items(answer, operation.items)
      items.push(...found)
      if (items.length > this.#limits.maxEntries) throw this.#tooMany(operation)
      if (byCursor) {
        cursor = this.#text(answer, operation, 'next')
        if (cursor === undefined || cursor === '') return items
        if (cursors.has(cursor)) throw this.#odd(operation, 'gives the same page again')
        cursors.add(cursor)
      } else if (!paged || found.length === 0 || this.#isWhole(answer, operation, items.length)) {
        return items
      }
    }
    throw this.#tooMany(operation)
  }

  async #page(
    { operation, template, values, request }: List,
    at: { readonly offset: number; readonly page: number; readonly cursor: string | undefined },
  ): Promise<JsonValue | undefined> {
    const places: Readonly<Record<string, string | undefined>> = {
      offset: String(at.offset),
      limit: String(this.#limits.pageSize),
      page: String(at.page + this.#limits.firstPage),
      cursor: at.cursor,
    }
    const answer = await this.#caller.call({
      operation,
      ...(template === undefined ? {} : { template }),
      values: (name) => (Object.hasOwn(places, name) ? places[name] : values(name)),
      request,
    })
    return answer?.json()
  }

  /** Without a total, only an empty page is the end: the server may give less than it was asked for. */
  #isWhole(answer: JsonValue, operation: Operation, read: number): boolean {
    const total = this.#text(answer, operation, 'total')
    if (total === undefined) return false
    if (!/^\d{1,15}$/.test(total)) throw this.#odd(operation, 'has a total that is no number')
    return read >= Number(total)
  }

  #text(answer: JsonValue, operation: Operation, what: 'total' | 'next'): string | undefined {
    const path = operation[what]
    return path === undefined ? undefined : this.#reader.texts(answer, path, what)[0]
  }

  #odd({ name }: Operation, reason: string): GatewayError {
    return new GatewayError('TARGET_FAILED', `the list of ${name} of target "${this.#target}" ${reason}`)
  }

  #tooMany({ name }: Operation): GatewayError {
    return new GatewayError(
      'BAD_REQUEST',
      `${name} of target "${this.#target}" gives more than ${this.#limits.maxEntries} entries`,
      {
        publicText: 'Too many entries would have to be read; narrow the filter.',
        keyword: 'tooMany',
      },
    )
  }
}
