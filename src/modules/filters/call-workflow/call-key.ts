import { hash, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/http.ts'
import type { CallKey } from '#sdk/runs.ts'
import type { CallBody } from './call-body.ts'

const slowHash = promisify<string, string, number, Buffer>(scrypt)
const sha256 = (text: string): string => hash('sha256', text, 'base64url')

/** The key under which the call may come again; undefined where the caller named none. */
export async function readCallKey(
  request: GatewayRequest,
  body: CallBody,
  owner: { readonly application: string; readonly mount: string; readonly caller: string },
): Promise<CallKey | undefined> {
  const key = header(request, 'idempotency-key')
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    const publicText = 'An Idempotency-Key has 1 to 255 visible ASCII characters.'
    throw new GatewayError('BAD_REQUEST', 'an unusable idempotency key', { publicText })
  }
  const scope = sha256(JSON.stringify([owner.application, owner.mount, owner.caller]))
  return { scope, key, bodyHash: await bodyHash(body, `${scope} ${key}`) }
}

/** What is stored of the body must not help to guess the password in it, so that goes in by way of a slow hash. */
async function bodyHash(body: CallBody, salt: string): Promise<string> {
  const { userPassword, ...user } = body.user
  const password = userPassword === undefined ? '' : (await slowHash(userPassword, salt, 32)).toString('base64url')
  return sha256(JSON.stringify([{ ...body, user }, password]))
}
