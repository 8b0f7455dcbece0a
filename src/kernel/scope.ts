export interface Closable {
  close?(): Promise<void> | void
}

/** Owns what was opened, and closes it in reverse order, once. */
export class Scope {
  readonly #stack = new AsyncDisposableStack()

  own<T extends Closable>(thing: T): T {
    this.#stack.defer(async () => {
      await thing.close?.()
    })
    return thing
  }

  defer(close: () => Promise<void> | void): void {
    this.#stack.defer(async () => {
      await close()
    })
  }

  close(): Promise<void> {
    return this.#stack.disposeAsync()
  }
}

/** Runs `build` with a scope. If it throws, everything that the scope owns is closed before the error is rethrown. */
export async function buildScoped<T>(build: (scope: Scope) => Promise<T>): Promise<{ value: T; scope: Scope }> {
  const scope = new Scope()
  try {
    return { value: await build(scope), scope }
  } catch (error) {
    await scope.close()
    throw error
  }
}
