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

export class RuntimeException extends JavaException {
  static override readonly javaName: string = 'java.lang.RuntimeException'
}

export class IllegalArgumentException extends RuntimeException {
  static override readonly javaName: string = 'java.lang.IllegalArgumentException'
}

export class NumberFormatException extends IllegalArgumentException {
  static override readonly javaName: string = 'java.lang.NumberFormatException'
}

export class IllegalStateException extends RuntimeException {
  static override readonly javaName: string = 'java.lang.IllegalStateException'
}

export class UnsupportedOperationException extends RuntimeException {
  static override readonly javaName: string = 'java.lang.UnsupportedOperationException'
}

export class NullPointerException extends RuntimeException {
  static override readonly javaName: string = 'java.lang.NullPointerException'
}

export class IndexOutOfBoundsException extends RuntimeException {
  static override readonly javaName: string = 'java.lang.IndexOutOfBoundsException'
}

export class NoSuchElementException extends RuntimeException {
  static override readonly javaName: string = 'java.util.NoSuchElementException'
}

/** The other system could not be reached: worth a retry. */
export class IOException extends JavaException {
  static override readonly javaName: string = 'java.io.IOException'
  override readonly code = 'unreachable'
}

export class ConnectException extends IOException {
  static override readonly javaName: string = 'java.net.ConnectException'
}

export class HttpTimeoutException extends IOException {
  static override readonly javaName: string = 'java.net.http.HttpTimeoutException'
}

export class ProvisioningException extends JavaException {
  static override readonly javaName: string = 'com.tremolosecurity.provisioning.core.ProvisioningException'
}
