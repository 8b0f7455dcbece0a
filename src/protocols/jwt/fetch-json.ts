import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { get as httpsGet } from 'node:https'
import { get as httpGet } from '#kernel/node-http.ts'

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

/** The same, where only servers with a certificate of these authorities (PEM) are believed. */
export const fetchJsonTrusting =
  (authorities: string): FetchJson =>
  async (url, limits) =>
    (await fetchJsonAnswer(url, limits, authorities)).body

export interface JsonAnswer {
  readonly body: unknown
  readonly headers: IncomingHttpHeaders
}

/** The same, with the headers of the answer. */
export async function fetchJsonAnswer(url: URL, limits: FetchLimits, authorities?: string): Promise<JsonAnswer> {
  const signal = AbortSignal.timeout(limits.millis)
  const response = await open(url, signal, authorities)
  try {
    if (response.statusCode !== 200) throw new Error(`${url.href} answered ${response.statusCode}`)
    return { body: JSON.parse(await readText(response, url, limits.bytes)), headers: response.headers }
  } finally {
    response.destroy()
  }
}

function open(url: URL, signal: AbortSignal, ca: string | undefined): Promise<IncomingMessage> {
  const get = url.protocol === 'https:' ? httpsGet : httpGet
  const options = { agent: false, signal, headers: { accept: 'application/json' }, ...(ca === undefined ? {} : { ca }) }
  return new Promise((resolve, reject) => {
    get(url, options, resolve).on('error', reject)
  })
}

async function readText(response: IncomingMessage, url: URL, limit: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) throw new Error(`${url.href} answered more than ${limit} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
