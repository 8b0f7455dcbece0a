import { GatewayError } from '#kernel/errors.ts'
import {
  type ApiServer,
  callApi,
  type KubernetesConnection,
  openApiServer,
} from '#protocols/kubernetes/api-connection.ts'

export interface ReviewedToken {
  readonly authenticated: boolean
  readonly error: string | undefined
  readonly username: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: ReadonlyMap<string, readonly string[]>
  readonly audiences: readonly string[]
}

export interface TokenReviewClient {
  /** Throws TARGET_UNREACHABLE without a review by the API server. No message contains the token. */
  review(token: string, audiences: readonly string[]): Promise<ReviewedToken>
  close(): void
}

export interface ReviewLimits {
  readonly timeoutMillis: number
}

const mostBytes = 256 * 1024
const retryAfter = 2

/** The client library takes over half a second to load, so it is loaded only if there is a cluster. */
export async function createTokenReviewClient(
  connection: KubernetesConnection,
  limits: ReviewLimits,
): Promise<TokenReviewClient> {
  const library = await import('@kubernetes/client-node')
  const server = await openApiServer(connection, () => new library.KubeConfig())
  const api = new library.AuthenticationV1Api(
    library.createConfiguration({
      baseServer: new library.ServerConfiguration(server.address, {}),
      httpApi: library.wrapHttpLibrary({
        async send(request) {
          const answer = await call(server, request, limits.timeoutMillis)
          if (answer.status < 200 || answer.status > 299) throw new Error(`the API server answered ${answer.status}`)
          return new library.ResponseContext(
            answer.status,
            { 'content-type': answer.contentType },
            new library.SelfDecodingBody(Promise.resolve(Buffer.from(answer.body))),
          )
        },
      }),
    }),
  )
  return {
    close: () => server.close(),
    async review(token, audiences) {
      const spec = audiences.length === 0 ? { token } : { token, audiences: [...audiences] }
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec }
      try {
        return readReview(await api.createTokenReview({ body }))
      } catch (error) {
        throw new GatewayError('TARGET_UNREACHABLE', `no token review from ${server.address}`, {
          cause: error,
          retryAfter,
        })
      }
    },
  }
}

interface LibraryRequest {
  getUrl(): string
  getHttpMethod(): { toString(): string }
  getHeaders(): Record<string, string>
  getBody(): unknown
}

async function call(server: ApiServer, request: LibraryRequest, millis: number) {
  const body = request.getBody()
  if (typeof body !== 'string') throw new Error('a token review is JSON text')
  return callApi(
    { url: request.getUrl(), method: request.getHttpMethod().toString(), headers: request.getHeaders(), body },
    await server.credentials(),
    { millis, bytes: mostBytes },
  )
}

interface RawReview {
  readonly kind?: unknown
  readonly status?: {
    readonly authenticated?: unknown
    readonly error?: unknown
    readonly audiences?: unknown
    readonly user?: {
      readonly username?: unknown
      readonly uid?: unknown
      readonly groups?: unknown
      readonly extra?: unknown
    }
  }
}

/** Throws a plain Error for anything but a review; members of a wrong type count as absent. */
function readReview(review: RawReview | undefined): ReviewedToken {
  if (review?.kind !== 'TokenReview' || typeof review.status !== 'object' || review.status === null) {
    throw new Error('the API server did not answer with a TokenReview')
  }
  const { authenticated, error, audiences, user } = review.status
  return {
    authenticated: authenticated === true,
    error: typeof error === 'string' && error !== '' ? error : undefined,
    username: textOf(user?.username),
    uid: textOf(user?.uid),
    groups: textsOf(user?.groups),
    extra: new Map(Object.entries(user?.extra ?? {}).map(([name, values]) => [name, textsOf(values)])),
    audiences: textsOf(audiences),
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((member) => typeof member === 'string') : []
