import type { AccountErrors } from '#features/account/contract/account.ts'
import type { MainErrors } from '#sdk/contract/errors.ts'
import type { Method, NamesIn, Route } from '#sdk/contract/routes.ts'
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

/** The call of an operation. */
export interface ApiRequest {
  readonly method: Method
  readonly address: string
}

export interface CallOptions {
  readonly method?: Method
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** Fails with 401 instead of waiting for a new session. */
  readonly now?: boolean
}

/** One call of an API of the gateway; `T` is the answer in the contract. */
export async function call<T>(request: ApiRequest | string, options: CallOptions = {}): Promise<T> {
  const text = await (await callForResponse(request, options)).text()
  return (text === '' ? undefined : JSON.parse(text)) as T
}

/** The same, for an answer that is not JSON. */
export async function callForResponse(request: ApiRequest | string, options: CallOptions = {}): Promise<Response> {
  for (;;) {
    const response = await send(request, options)
    if (response.ok) return response
    if (response.status !== 401 || options.now === true) {
      const body = readErrors(await response.text())
      if (body.code === 'OTHER_PERSON') return await reloadPage()
      throw new ApiError(response.status, body)
    }
    await signedInAgain()
  }
}

async function send(
  request: ApiRequest | string,
  { method: asked = 'GET', body, signal }: CallOptions,
): Promise<Response> {
  const { method, address } = typeof request === 'string' ? { method: asked, address: request } : request
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

/** Parameters without a value are left out. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>

/** What a call of an operation needs: the names in its path, and perhaps a query. */
export type Given<R extends string> = [NamesIn<R>] extends [never]
  ? [names?: Readonly<Record<string, never>>, query?: Query]
  : [names: Readonly<Record<NamesIn<R>, string>>, query?: Query]

/** A call of the operation with this route, below an API's mount; names are encoded. */
export function apiRequest<R extends Route>(mount: string, route: R, given: Given<R>): ApiRequest {
  const [names = {}, query]: readonly [Readonly<Record<string, string>>?, Query?] = given
  const [method, path = ''] = route.split(' ') as [Method, string?]
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ''))
  return { method, address: withQuery(mount + filled, query) }
}

/** An address below an API's mount; every part is encoded. */
export const address = (mount: string, parts: readonly string[], query?: Query): string =>
  withQuery(`${mount}/${parts.map(encodeURIComponent).join('/')}`, query)

export function withQuery(url: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : value === undefined ? [] : [value]) search.append(name, one)
  }
  return `${url}${search.size === 0 ? '' : `?${search}`}`
}
