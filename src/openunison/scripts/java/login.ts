import { HashMap } from './hash-map.ts'
import { ConfigManager } from './host-objects.ts'
import { AuthInfo } from './identity.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { javaValue } from './java-value.ts'

/** com.tremolosecurity.proxy.auth.AuthController: who is signed in. */
export class AuthController {
  #authInfo: AuthInfo | null
  readonly #holder: RequestHolder

  constructor(authInfo: AuthInfo | null, chain = '') {
    this.#authInfo = authInfo
    this.#holder = new RequestHolder(chain)
  }

  getAuthInfo(): AuthInfo | null {
    return this.#authInfo
  }

  setAuthInfo(authInfo: unknown): void {
    const plain = javaValue(authInfo)
    if (plain !== null && !(plain instanceof AuthInfo)) throw new IllegalArgumentException('an AuthInfo is needed')
    this.#authInfo = plain as AuthInfo | null
  }

  getHolder(): RequestHolder {
    return this.#holder
  }
}

/** com.tremolosecurity.proxy.auth.RequestHolder. */
export class RequestHolder {
  readonly #chain: string

  constructor(chain: string) {
    this.#chain = chain
  }

  getAuthChainName(): string {
    return this.#chain
  }
}

/** com.tremolosecurity.proxy.auth.util.AuthStep: whether the mechanism accepts the caller. */
export class AuthStep {
  #executed = false
  #success = false

  isExecuted(): boolean {
    return this.#executed
  }

  setExecuted(executed: unknown): void {
    this.#executed = javaValue(executed) === true
  }

  isSuccess(): boolean {
    return this.#success
  }

  setSuccess(success: unknown): void {
    this.#success = javaValue(success) === true
  }
}

/** com.tremolosecurity.proxy.auth.sys.AuthManager. */
export class AuthManager {
  readonly #continueChain: () => void

  constructor(continueChain: () => void) {
    this.#continueChain = continueChain
  }

  /** Ends the mechanism; the gateway runs the next one after the script. */
  nextAuth(_request?: unknown, _response?: unknown, _session?: unknown, _redirect?: unknown): boolean {
    this.#continueChain()
    return true
  }
}

/** com.tremolosecurity.config.xml.AuthChainType. */
export class AuthChainType {
  readonly #name: string
  readonly #level: number

  constructor(name: string, level: number) {
    this.#name = name
    this.#level = level
  }

  getName(): string {
    return this.#name
  }

  getLevel(): number {
    return this.#level
  }
}

/** The configuration as a mechanism sees it. */
export class LoginConfig extends ConfigManager {
  readonly #manager: AuthManager
  readonly #chain: AuthChainType

  constructor(manager: AuthManager, chain: AuthChainType) {
    super()
    this.#manager = manager
    this.#chain = chain
  }

  getAuthManager(): AuthManager {
    return this.#manager
  }

  /** Only the chain that runs. */
  getAuthChains(): HashMap {
    return new HashMap({ [this.#chain.getName()]: this.#chain })
  }
}

/** com.tremolosecurity.config.util.UrlHolder. */
export class UrlHolder {
  readonly #config: LoginConfig

  constructor(config: LoginConfig) {
    this.#config = config
  }

  getConfig(): LoginConfig {
    return this.#config
  }
}
