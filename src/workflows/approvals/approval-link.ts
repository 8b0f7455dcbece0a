import type { KeyObject } from 'node:crypto'
import * as errors from 'jose/errors'
import { SignJWT } from 'jose/jwt/sign'
import { jwtVerify } from 'jose/jwt/verify'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'

/** What a link permits: one decision, on one version of one approval. */
export interface ApprovalLinkClaims {
  readonly approval: string
  readonly version: number
  /** The approver's login, for display. */
  readonly approver?: string
  /** The only one who may use the link. Absent, with `approver`, if every approver who is logged in may. */
  readonly identity?: Identity
  readonly approve: boolean
}

/** A page that handles links. */
export interface ApprovalLinkPage {
  /** Its public URL, without a token. */
  readonly url: string
  readonly validMillis: number
  /** Anyone who has a link of an approver can decide. */
  readonly withoutLogin: boolean
}

/** What a filter that handles links offers. */
export interface OffersApprovalLinks {
  readonly approvalLinks: ApprovalLinkPage
}

export const offersApprovalLinks = <F extends object>(filter: F): filter is F & OffersApprovalLinks =>
  'approvalLinks' in filter && filter.approvalLinks !== undefined

type ReadApprovalLink =
  | { readonly kind: 'valid'; readonly claims: ApprovalLinkClaims }
  | { readonly kind: 'expired' }
  | { readonly kind: 'forged' }

const purpose = 'gatehouse approval links'
const type = 'approval-link+jwt'
const maxTokenLength = 2048

/** The installation's keys for links; anyone who has one can decide every approval. */
export const approvalLinkKeys = (keys: Pick<KeySource, 'secretKeys'>): Promise<readonly KeyObject[]> =>
  keys.secretKeys(purpose)

/** Signs new links. */
export async function approvalLinkKey(keys: Pick<KeySource, 'secretKeys'>): Promise<KeyObject> {
  const [first] = await approvalLinkKeys(keys)
  if (first === undefined) throw new GatewayError('INTERNAL', 'there is no key for approval links')
  return first
}

/** Signs the link of a message about an approval. */
export function signApprovalLink(claims: ApprovalLinkClaims, expires: Date, key: KeyObject): Promise<string> {
  const { approval, version, approver, identity, approve } = claims
  const person = identity === undefined ? {} : { who: identity, sub: approver ?? '' }
  return new SignJWT({ apr: approval, ver: version, act: approve ? 'approve' : 'deny', ...person })
    .setProtectedHeader({ alg: 'HS256', typ: type })
    .setExpirationTime(expires)
    .sign(key)
}

/** Checks that the token is ours and has not expired; the caller checks the version of the approval. */
export async function readApprovalLink(
  token: string,
  keys: readonly KeyObject[],
  now: Date,
): Promise<ReadApprovalLink> {
  if (token.length > maxTokenLength) return { kind: 'forged' }
  for (const key of keys) {
    const read = await readWithKey(token, key, now)
    if (read.kind !== 'forged') return read
  }
  return { kind: 'forged' }
}

async function readWithKey(token: string, key: KeyObject, now: Date): Promise<ReadApprovalLink> {
  try {
    const options = { algorithms: ['HS256'], typ: type, currentDate: now, requiredClaims: ['exp'] }
    const { payload } = await jwtVerify(token, key, options)
    const { sub, apr, ver, act, who } = payload
    if (typeof apr !== 'string' || typeof ver !== 'number') return { kind: 'forged' }
    if (act !== 'approve' && act !== 'deny') return { kind: 'forged' }
    const claims = { approval: apr, version: ver, approve: act === 'approve' }
    if (sub === undefined && who === undefined) return { kind: 'valid', claims }
    if (typeof sub !== 'string' || typeof who !== 'string') return { kind: 'forged' }
    return { kind: 'valid', claims: { ...claims, approver: sub, identity: storedIdentity(who) } }
  } catch (error) {
    if (error instanceof errors.JWTExpired) return { kind: 'expired' }
    if (error instanceof errors.JOSEError || error instanceof TypeError) return { kind: 'forged' }
    throw error
  }
}
