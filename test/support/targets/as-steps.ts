import { randomUUID } from 'node:crypto'
import type { Target, TargetRequest } from '#sdk/target/target.ts'

/** Each call as its own step: a key is never used for another request. */
export function asSteps<T extends Target>(target: T): T {
  const isRequest = (value: unknown): value is TargetRequest =>
    typeof value === 'object' && value !== null && 'idempotencyKey' in value
  return new Proxy(target, {
    get: (object, name) => {
      const member: unknown = Reflect.get(object, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) =>
        member.apply(
          object,
          args.map((arg) => (isRequest(arg) ? { ...arg, idempotencyKey: randomUUID() } : arg)),
        )
    },
  })
}
