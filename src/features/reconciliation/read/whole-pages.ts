import { GatewayError } from '#kernel/errors.ts'

/** A page of a side. */
export interface Page<T> {
  readonly items: readonly T[]
  /** How many there are in total, if the system counts them. */
  readonly total: number | undefined
  readonly next?: string | undefined
}

export interface PageReader<T> {
  /** What is read, for errors: `the source "people"`. */
  readonly what: string
  /** The first page has the total; of others it isn't needed. */
  read(after: string | undefined): Promise<Page<T>>
  /** How many there are now. */
  count(): Promise<number | undefined>
  /** Stores the items, and returns how many of them are new. */
  add(items: readonly T[]): Promise<number>
}

/** A system that gives this many pages in a row without anything new has none. */
const mostEmptyPages = 10

/**
 * Reads a side to its end, and yields after each page. Returns whether the side changed meanwhile: where pages are numbered,
 * each user that is deleted hides another one. Throws TARGET_FAILED if it ends before the total that it names, or
 * after it, or comes to no end: an account that is only missing in an answer would count as extra.
 */
export async function* readWhole<T>({ what, read, count, add }: PageReader<T>): AsyncGenerator<void, boolean> {
  let seen = 0
  let hasRepeated = false
  let empty = 0
  let after: string | undefined
  let first: number | undefined
  do {
    const page = await read(after)
    if (after === undefined) first = page.total
    const fresh = await add(page.items)
    seen += fresh
    hasRepeated ||= fresh < page.items.length
    empty = fresh === 0 ? empty + 1 : 0
    if (page.next !== undefined && (page.next === after || empty > mostEmptyPages)) {
      throw unreliable(`${what} comes to no end: it answered the same page again after ${seen} users`)
    }
    after = page.next
    yield
  } while (after !== undefined)
  // Users may be created and deleted while the side is read, so any number in between is plausible.
  const last = first === undefined ? undefined : await count()
  if (first === undefined || last === undefined) return hasRepeated
  requireTotal(what, seen, first, last)
  return hasRepeated || first !== last
}

/** Throws TARGET_FAILED unless as many users were seen as there are, or were when the first page was read. */
export function requireTotal(what: string, seen: number, first: number, last: number): void {
  const stated = first === last ? `${first}` : `${Math.min(first, last)} to ${Math.max(first, last)}`
  if (seen < Math.min(first, last)) {
    throw unreliable(`${what} ended after ${seen} users, but says that it has ${stated}`)
  }
  if (seen > Math.max(first, last)) {
    throw unreliable(`${what} returned ${seen} users, but says that it has ${stated}`)
  }
}

export function unreliable(problem: string): GatewayError {
  const text = `${problem}. Nothing is concluded from it. Run the comparison again, or repair the system.`
  return new GatewayError('TARGET_FAILED', text, { publicText: text })
}
