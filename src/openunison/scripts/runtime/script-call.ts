import { ProxyConstants } from '#openunison/scripts/java/constants.ts'
import type { HashMap } from '#openunison/scripts/java/hash-map.ts'
import type { AuthInfo } from '#openunison/scripts/java/identity.ts'
import { IllegalStateException } from '#openunison/scripts/java/java-exception.ts'
import {
  AuthChainType,
  AuthController,
  AuthManager,
  AuthStep,
  LoginConfig,
  UrlHolder,
} from '#openunison/scripts/java/login.ts'
import {
  HttpFilterChain,
  HttpFilterRequest,
  HttpFilterResponse,
  HttpServletRequest,
  HttpSession,
  type PlainRequest,
  plainResponse,
} from '#openunison/scripts/java/servlet.ts'

/** What a call returns instead of the function's own result, because the function changes its arguments. */
export interface CallResult {
  /** Plain data. */
  result(): unknown
}

/** The objects of one call of a filter. */
export class FilterCall implements CallResult {
  readonly request: HttpFilterRequest
  readonly response = new HttpFilterResponse()
  readonly chain = new HttpFilterChain()
  readonly #authInfo: AuthInfo
  readonly #attributesOf: (authInfo: AuthInfo) => object
  readonly #before: string

  constructor(request: PlainRequest, authInfo: AuthInfo, attributesOf: (authInfo: AuthInfo) => object) {
    this.#authInfo = authInfo
    this.#attributesOf = attributesOf
    this.#before = this.#user()
    this.request = new HttpFilterRequest(request, authInfo)
  }

  /** Throws if the script changed the user: rules have decided by now, and the change would reach no one. */
  result(): object {
    if (this.#user() !== this.#before) {
      throw new IllegalStateException('a filter cannot change the attributes of the signed-in user')
    }
    return plainResponse(this.response)
  }

  #user(): string {
    return JSON.stringify([this.#authInfo.getUserDN(), this.#attributesOf(this.#authInfo)])
  }
}

/** The objects of one call of a mechanism. */
export class LoginCall implements CallResult {
  readonly request: HttpServletRequest
  readonly step = new AuthStep()
  readonly #controller: AuthController
  readonly #before: AuthInfo | null
  readonly #attributesOf: (authInfo: AuthInfo) => object
  #continued = false

  constructor(
    request: PlainRequest,
    {
      before,
      mechanism,
      params,
    }: { readonly before: AuthInfo | null; readonly mechanism: string; readonly params: HashMap },
    attributesOf: (authInfo: AuthInfo) => object,
  ) {
    this.#before = before
    this.#attributesOf = attributesOf
    const chain = new AuthChainType(before?.getAuthChain() ?? '', before?.getAuthLevel() ?? 0)
    this.#controller = new AuthController(before, chain.getName())
    const manager = new AuthManager(() => {
      this.#continued = true
    })
    const session = new HttpSession([
      [ProxyConstants.AUTH_CTL, this.#controller],
      [ProxyConstants.AUTH_MECH_NAME, mechanism],
      [ProxyConstants.AUTH_MECH_PARAMS, params],
    ])
    this.request = new HttpServletRequest(request, session, [
      [ProxyConstants.AUTOIDM_CFG, new UrlHolder(new LoginConfig(manager, chain))],
    ])
  }

  result(): object {
    const authInfo = this.#controller.getAuthInfo()
    return {
      executed: this.step.isExecuted(),
      success: this.step.isSuccess(),
      continued: this.#continued,
      replaced: authInfo !== this.#before,
      user: authInfo === null ? null : { dn: authInfo.getUserDN(), attributes: this.#attributesOf(authInfo) },
    }
  }
}
