/**
 * Freezes the realm's own objects, and everything that can be reached from those given, so that a script changes
 * nothing for the next one. Instances keep their state, which is private.
 */
export function freezeRealm(roots: readonly unknown[]): void {
  letErrorsBeNamed()
  const own = Object.getOwnPropertyNames(globalThis).map((name) => Reflect.get(globalThis, name))
  const hidden = [function* () {}, async () => {}, async function* () {}, [][Symbol.iterator](), new Map().entries()]
  const queue: unknown[] = [...own, ...hidden, ...roots]
  const seen = new Set<unknown>([globalThis])
  while (queue.length > 0) {
    const item = queue.pop()
    if ((typeof item !== 'object' && typeof item !== 'function') || item === null || seen.has(item)) continue
    seen.add(item)
    queue.push(Object.getPrototypeOf(item))
    for (const name of Reflect.ownKeys(item)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(item, name) ?? {}
      queue.push(value, get, set)
    }
    freeze(item)
  }
}

/** A frozen `name` could not be assigned to on an error either; through a setter it can. */
function letErrorsBeNamed(): void {
  Object.defineProperty(Error.prototype, 'name', {
    get: () => 'Error',
    set(this: Error, value: unknown) {
      Object.defineProperty(this, 'name', { value, writable: true, configurable: true })
    },
  })
}

/** Collections refuse it, being proxies; their handlers keep them closed. */
function freeze(item: object): void {
  try {
    Object.freeze(item)
  } catch {}
}
