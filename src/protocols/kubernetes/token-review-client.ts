import { GatewayError } from '#kernel/errors.ts'
import { callApi, type KubernetesConnection, openApiServer } from '#protocols/kubernetes/api-connection.ts'
import type { TokenReview } from './cluster.ts'

export interface TokenReviewClient {
  /** Throws TARGET_UNREACHABLE without a review by the API server. No message contains the token. */
  review(token: string, audiences: readonly string[]): Promise<TokenReview>
  close(): void
}

const mostBytes = 256 * 1024
const retryAfter = 2

export async function createTokenReviewClient(
  connection: KubernetesConnection,
  { timeoutMillis }: { readonly timeoutMillis: number },
): Promise<TokenReviewClient> {
  const server = await openApiServer(connection)
  const headers = { accept: 'application/json', 'content-type': 'application/json' }
  return {
    close: () => server.close(),
    async review(token, audiences) {
      const spec = audiences.length === 0 ? { token } : { token, audiences }
      const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec })
      const url = `${server.address}/apis/authentication.k8s.io/v1/tokenreviews`
      const limits = { millis: timeoutMillis, bytes: mostBytes }
      try {
        const answer = await callApi({ url, method: 'POST', headers, body }, await server.credentials(), limits)
        if (answer.status < 200 || answer.status > 299) throw new Error(`the API server answered ${answer.status}`)
        return readReview(JSON.parse(answer.body))
      } catch (error) {
        throw new GatewayError('TARGET_UNREACHABLE', `no token review from ${server.address}`, {
          cause: error,
          retryAfter,
        })
      }
    },
  }
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
function readReview(review: RawReview | null): TokenReview {
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
