import type { Awaitable } from '#kernel/awaitable.ts'
import { shownReason } from '#kernel/secret-values.ts'

/** Creates a part of the configuration; throws NotCreated with its place if that fails. */
export async function createAt<T>(at: string, create: () => Awaitable<T>): Promise<T> {
  try {
    return await create()
  } catch (cause) {
    throw new NotCreated(at, cause)
  }
}

/**
 * Creates one after the other, and throws what could not be created together at the end: the next attempt starts with
 * the first one, so that stopping at each of n would create n² of them.
 */
export async function createEach<T>(all: Iterable<T>, create: (one: T) => Awaitable<void>): Promise<void> {
  const failures: unknown[] = []
  for (const one of all) {
    try {
      await create(one)
    } catch (error) {
      if (!(error instanceof NotCreated)) throw error
      failures.push(error)
    }
  }
  throwFailures(failures)
}

/** Throws the first failure that is not a NotCreated, or all of them as one. */
export function throwFailures(failures: readonly unknown[]): void {
  const notCreated = failures.filter((error) => error instanceof NotCreated)
  const [first] = notCreated
  if (first === undefined || notCreated.length < failures.length) {
    for (const error of failures) if (!(error instanceof NotCreated)) throw error
    return
  }
  throw new NotCreated(first.at, first.cause, notCreated)
}

/** A part of the configuration that could not be created. The object that it belongs to is set aside. */
export class NotCreated extends Error {
  /** Where it is configured. */
  readonly at: string
  readonly reason: string
  /** This one and others that failed with it. */
  readonly all: readonly Pick<NotCreated, 'at' | 'reason'>[]

  constructor(at: string, cause: unknown, all?: readonly NotCreated[]) {
    const reason = shownReason(cause)
    super(`${at}: ${reason}`, { cause })
    this.name = 'NotCreated'
    this.at = at
    this.reason = reason
    this.all = all ?? [this]
  }
}
