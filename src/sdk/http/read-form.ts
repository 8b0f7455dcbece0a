import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from './http.ts'

const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i
const maxFields = 100
const ampersand = 0x26

/** The fields of an HTML form. Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, and BAD_REQUEST for too many fields. */
export async function readForm(request: GatewayRequest, limit: number): Promise<URLSearchParams> {
  const type = header(request, 'content-type') ?? ''
  if (!formContent.test(type)) throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${type}"`)
  const body = await request.body(limit)
  boundFields(body)
  return new URLSearchParams(body.toString('utf8'))
}

/** Counted before the fields are read. Throws BAD_REQUEST. */
export function boundFields(body: Buffer): void {
  let fields = 1
  for (let at = body.indexOf(ampersand); at >= 0; at = body.indexOf(ampersand, at + 1)) {
    if (++fields > maxFields) {
      const publicText = `The form has more than ${maxFields} fields.`
      throw new GatewayError('BAD_REQUEST', publicText, { publicText })
    }
  }
}
