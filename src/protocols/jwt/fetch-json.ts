import { exchange, type HttpAnswer } from '#protocols/http/http-client.ts'

export interface FetchLimits {
  /** The most bytes of a body. */
  readonly bytes: number
  /** Milliseconds until the last byte. */
  readonly millis: number
}

export type FetchJson = (url: URL, limits: FetchLimits) => Promise<unknown>

/**
 * One GET over a connection of its own, without proxy, compression or redirects. Throws a plain Error unless the
 * answer is 200 with a JSON body inside the limits.
 */
export const fetchJson: FetchJson = async (url, limits) => (await fetchJsonAnswer(url, limits)).body

/** The same, but trusts only servers with a certificate of these authorities (PEM). */
export const fetchJsonTrusting =
  (authorities: string): FetchJson =>
  async (url, limits) =>
    (await fetchJsonAnswer(url, limits, authorities)).body

/** The same, with the headers of the answer. */
export async function fetchJsonAnswer(
  url: URL,
  { bytes, millis }: FetchLimits,
  ca?: string,
): Promise<{ readonly body: unknown; readonly headers: HttpAnswer['headers'] }> {
  const call = { method: 'GET', url, headers: { accept: 'application/json' } }
  const { status, headers, body } = await exchange(call, { ca }, { signal: AbortSignal.timeout(millis), bytes })
  if (status !== 200) throw new Error(`${url.href} answered ${status}`)
  return { body: JSON.parse(body), headers }
}
