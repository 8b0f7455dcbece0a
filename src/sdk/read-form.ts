import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/http.ts'

const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/** What an HTML form sent. Throws UNSUPPORTED_MEDIA_TYPE and BODY_TOO_LARGE. */
export async function readForm(request: GatewayRequest, limit: number): Promise<URLSearchParams> {
  const type = header(request, 'content-type') ?? ''
  if (!formContent.test(type)) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${type}"`)
  return new URLSearchParams((await request.body(limit)).toString('utf8'))
}
