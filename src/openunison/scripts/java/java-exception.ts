/** java.lang.Throwable and its subclasses, as scripts see them. `code` is the kind of failure for the gateway. */
export class JavaException extends Error {
  static readonly javaName: string = 'java.lang.Exception'
  readonly code: string | undefined = undefined

  constructor(message?: unknown, cause?: unknown) {
    super(message === undefined || message === null ? '' : String(message), cause === undefined ? {} : { cause })
  }

  get javaName(): string {
    return (this.constructor as typeof JavaException).javaName
  }

  getMessage(): string | null {
    return this.message === '' ? null : this.message
  }

  getLocalizedMessage(): string | null {
    return this.getMessage()
  }

  getCause(): unknown {
    return this.cause ?? null
  }

  printStackTrace(): void {}

  override toString(): string {
    return this.message === '' ? this.javaName : `${this.javaName}: ${this.message}`
  }
}

/** A subclass that differs in its name only. */
const named = (javaName: string, parent: typeof JavaException): typeof JavaException =>
  class extends parent {
    static override readonly javaName: string = javaName
  }

/** The other system could not be reached: worth a retry. */
export class IOException extends JavaException {
  static override readonly javaName: string = 'java.io.IOException'
  override readonly code = 'unreachable'
}

export const ConnectException = named('java.net.ConnectException', IOException)
export const HttpTimeoutException = named('java.net.http.HttpTimeoutException', IOException)
export const RuntimeException = named('java.lang.RuntimeException', JavaException)
export const IllegalArgumentException = named('java.lang.IllegalArgumentException', RuntimeException)
export const NumberFormatException = named('java.lang.NumberFormatException', IllegalArgumentException)
export const IllegalStateException = named('java.lang.IllegalStateException', RuntimeException)
export const UnsupportedOperationException = named('java.lang.UnsupportedOperationException', RuntimeException)
export const NullPointerException = named('java.lang.NullPointerException', RuntimeException)
export const IndexOutOfBoundsException = named('java.lang.IndexOutOfBoundsException', RuntimeException)
export const NoSuchElementException = named('java.util.NoSuchElementException', RuntimeException)
export const ProvisioningException = named('com.tremolosecurity.provisioning.core.ProvisioningException', JavaException)
