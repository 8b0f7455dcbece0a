import { request as httpsRequest } from 'node:https'
import type { IssuerFile } from '#engine/sts/publish/issuer-files.ts'
import { parseTrustedUrl } from '#kernel/issuer-url.ts'
import { request as httpRequest } from '#kernel/node-http.ts'
import type { PublishDestination } from '#sdk/token-keys.ts'

type Hook = NonNullable<PublishDestination['invalidate']>

/**
 * Tells a cache by POST which addresses are new: `{"issuer": ..., "paths": [...]}`. Any answer of 200 to 299 will do;
 * redirects are not followed, since the header may hold a secret. Throws a plain Error otherwise.
 */
export async function invalidate(
  { url, header, secret }: Hook,
  issuer: string,
  files: readonly IssuerFile[],
  signal: AbortSignal,
): Promise<void> {
  const base = new URL(issuer).pathname.replace(/\/$/, '')
  const body = JSON.stringify({ issuer, paths: files.map(({ path }) => `${base}/${path}`) })
  const address = parseTrustedUrl(url)
  const open = address.protocol === 'https:' ? httpsRequest : httpRequest
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(secret === undefined ? {} : { [header ?? 'authorization']: secret }),
  }
  const status = await new Promise<number>((resolve, reject) => {
    open(address, { method: 'POST', agent: false, signal, headers }, (answer) => {
      resolve(answer.statusCode ?? 0)
      answer.destroy()
    })
      .on('error', reject)
      .end(body)
  })
  if (status < 200 || status > 299) throw new Error(`${address.origin} answered ${status}`)
}
