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

/** A part of the configuration that could not be created. The object that it belongs to is set aside. */
export class NotCreated extends Error {
  /** Where it is configured. */
  readonly at: string
  readonly reason: string

  constructor(at: string, cause: unknown) {
    const reason = shownReason(cause)
    super(`${at}: ${reason}`, { cause })
    this.name = 'NotCreated'
    this.at = at
    this.reason = reason
  }
}
