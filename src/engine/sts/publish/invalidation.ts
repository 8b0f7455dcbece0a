import type { IssuerFile } from '#engine/sts/publish/issuer-files.ts'
import { parseTrustedUrl } from '#kernel/issuer-url.ts'
import { openExchange } from '#protocols/http/http-client.ts'
import type { PublishDestination } from '#sdk/sts/token-keys.ts'

type Hook = NonNullable<PublishDestination['invalidate']>

/**
 * Sends a cache by POST which addresses are new: `{"issuer": ..., "paths": [...]}`. Any answer of 200 to 299 will do;
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
  const headers = {
    'content-type': 'application/json',
    ...(secret === undefined ? {} : { [header ?? 'authorization']: secret }),
  }
  const answer = await openExchange({ method: 'POST', url: address, headers, body }, {}, signal)
  answer.destroy()
  const { statusCode: status = 0 } = answer
  if (status < 200 || status > 299) throw new Error(`${address.origin} answered ${status}`)
}
