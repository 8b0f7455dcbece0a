import { hash } from 'node:crypto'
import { foldValue } from '#kernel/text/compare-texts.ts'

declare const brand: unique symbol

/**
 * Who a user or program is, independent of how they log in: a directory entry, or, for callers without one, an
 * issuer and its subject. Compared byte for byte. Logins are for display: two users may share one, and one user may
 * have several.
 */
export type Identity = string & { readonly [brand]: true }

/** A stored reference to a user: the identity, and the login to show. */
export interface UserRef {
  readonly identity: Identity
  readonly login: string
  /** The login comes from a token, and the user's entry does not have it. */
  readonly isClaimed?: boolean
}

/** Longer identities are stored as a hash, so that they fit into an index. */
const maxLength = 300

const identity = (...parts: readonly string[]): Identity => {
  const text = parts.map((part) => encodeURIComponent(part.toWellFormed())).join(':')
  return (text.length <= maxLength ? text : `sha256:${hash('sha256', text, 'base64url')}`) as Identity
}

/** An entry of the directory: the insert that holds it, and the entry's own identifier there. */
export const entryIdentity = (insert: string, id: string): Identity => identity('entry', insert, id)

/** A caller that only a credential describes. */
export const issuerIdentity = (issuer: string, subject: string): Identity => identity('issuer', issuer, subject)

/** A part of the gateway that starts runs, such as a job. */
export const ownIdentity = (part: string): Identity => identity('gatehouse', part)

/**
 * The identity of rows from before identities, which have only a login. Only the migration to identities writes it.
 * `identitiesOf` decides who owns such a row.
 */
export const loginIdentity = (login: string): Identity => `${formerPrefix}${foldValue(login, false)}` as Identity

const formerPrefix = 'login:'

export const isLoginOnly = (identity: Identity): boolean => identity.startsWith(formerPrefix)

/** The insert and the identifier of a directory entry; undefined for an identity that isn't one, or is stored as a hash. */
export function entryOf(identity: Identity): { readonly insert: string; readonly id: string } | undefined {
  const [kind, insert, id, ...more] = identity.split(':')
  if (kind !== 'entry' || insert === undefined || id === undefined || more.length > 0) return undefined
  try {
    return { insert: decodeURIComponent(insert), id: decodeURIComponent(id) }
  } catch {
    return undefined
  }
}

/** The identities of the users that a run names by login; a part is absent where the user is unknown. */
export interface RunIdentities {
  readonly requester?: Identity | undefined
  readonly caller?: Identity | undefined
  readonly subject?: Identity | undefined
}

/** An identity that was stored. */
export const storedIdentity = (text: string): Identity => text as Identity

/**
 * The identities under which this user's rows are stored: their own, and, for a directory entry, that of rows from
 * before identities with the entry's login. Other callers own no such row: it doesn't say which issuer its login
 * came from, and an issuer may give anyone the login of a directory user.
 */
export const identitiesOf = ({ identity, login, isClaimed = false }: UserRef): readonly Identity[] =>
  entryOf(identity) === undefined || isClaimed ? [identity] : [identity, loginIdentity(login)]

/** Whether a stored identity is this user's. */
export const isUser = (stored: Identity | undefined, user: UserRef): boolean =>
  stored !== undefined && identitiesOf(user).includes(stored)
