import type { AccountErrors } from '#features/account/contract/account.ts'
import type { MainErrors } from '#sdk/contract/errors.ts'
import { noteDate } from './gateway-clock.ts'
import { ownerHeader, reloadPage } from './page-owner.ts'
import { signedInAgain } from './session-state.ts'

type ErrorBody = Partial<MainErrors & Pick<AccountErrors, 'stepUp'>>

/** A rejection by the gateway, in its own words. */
export class ApiError extends Error {
  readonly status: number
  readonly texts: readonly string[]
  /** The gateway's error code. */
  readonly code: string | undefined
  readonly requestId: string | undefined
  /** Signing in again would help. */
  readonly stepUp: boolean

  constructor(status: number, { errors, code, requestId, stepUp }: ErrorBody) {
    super(errors?.join(' ') ?? `HTTP ${status}`)
    this.name = 'ApiError'
    this.status = status
    this.texts = errors ?? []
    this.code = code
    this.requestId = requestId
    this.stepUp = stepUp === true
  }
}

/** The gateway is unreachable. */
export class NoConnection extends Error {}

export interface CallOptions {
  readonly method?: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Fails with 401 instead of waiting for a new session. */
  readonly now?: boolean
}

/** One call of an API of the gateway; `T` is the answer in the contract. */
export async function call<T>(address: string, options: CallOptions = {}): Promise<T> {
  const text = await (await callForResponse(address, options)).text()
  return (text === '' ? undefined : JSON.parse(text)) as T
}

/** The same, for an answer that is not JSON. */
export async function callForResponse(address: string, options: CallOptions = {}): Promise<Response> {
  for (;;) {
    const response = await send(address, options)
    if (response.ok) return response
    if (response.status !== 401 || options.now === true) {
      const body = readErrors(await response.text())
      if (body.code === 'OTHER_PERSON') return await reloadPage()
      throw new ApiError(response.status, body)
    }
    await signedInAgain()
  }
}

async function send(address: string, { method = 'GET', body, signal }: CallOptions): Promise<Response> {
  try {
    const sent = Date.now()
    const response = await fetch(address, {
      method,
      headers: {
        accept: 'application/json',
        // Texts of the configuration come in the language of the page.
        'accept-language': document.documentElement.lang,
        'x-requested-with': 'portal',
        ...ownerHeader(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    noteDate(response.headers.get('date'), sent)
    return response
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new NoConnection('the gateway does not answer', { cause: error })
  }
}

function readErrors(text: string): ErrorBody {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    return {}
  }
}

/** An address below an API's mount; every part is encoded, and parameters without a value are left out. */
export function address(
  mount: string,
  parts: readonly string[],
  query: Readonly<Record<string, string | readonly string[] | undefined>> = {},
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : value === undefined ? [] : [value]) search.append(name, one)
  }
  const path = parts.map(encodeURIComponent).join('/')
  return `${mount}/${path}${search.size === 0 ? '' : `?${search}`}`
}
