import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { Awaitable } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { QueryTarget } from '#sdk/target/query-target.ts'

/** Whether it succeeded; it may only be rejected for an allowed reason. */
export async function accepted(work: () => Promise<unknown>, mayBeRefused: boolean): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    const isRefusal = error instanceof GatewayError && error.code === 'BAD_REQUEST'
    if (isRefusal && mayBeRefused) return false
    throw error
  }
}

/** No user can have the name: the lookup finds nothing, or is rejected. */
export async function nobody(look: () => Awaitable<unknown>): Promise<void> {
  try {
    same(await look(), undefined)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'BAD_REQUEST') throw error
  }
}

export async function fails(work: () => Promise<unknown>, codes: readonly string[]): Promise<void> {
  const failure = await work().then(
    () => 'no failure',
    (error: unknown) => (error instanceof GatewayError ? error.code : error),
  )
  if (!codes.some((code) => code === failure)) expect(failure).toBe(codes[0])
}

/** Vitest's own comparison takes longer than most lookups, so it only runs if there is a difference to show. */
export function same(found: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(found, expected)) expect(found).toEqual(expected)
}

/** Whether a value in a statement comes back unchanged. */
export async function isReadBack(target: QueryTarget, value: string): Promise<void> {
  const rows = await target.readRows('select :value as value', { value }, 2)
  same(
    rows.map((row) => ({ ...row })),
    [{ value }],
  )
}
