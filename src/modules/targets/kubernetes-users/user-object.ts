import { createHash } from 'node:crypto'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject } from '#sdk/target/kubernetes-cluster.ts'

export const userApi = { group: 'openunison.tremolo.io', version: 'v1', plural: 'users' } as const

/** Fields of OpenUnison's User objects. All other attributes are under `attributes`. */
const plainFields = ['first_name', 'last_name', 'email'] as const
/** The login and the object's own name, which only this target writes. */
const ownFields = ['sub', 'uid'] as const

type Spec = Readonly<Record<string, unknown>>

/** Values of a wrong type count as absent, since other programs write such objects too. */
export function readUser({ metadata, content }: ClusterObject): User {
  const spec = recordOf(content['spec'])
  const attributes = new Attributes()
  for (const [name, values] of Object.entries(recordOf(spec['attributes']))) attributes.set(name, textsOf(values))
  for (const field of [...ownFields, ...plainFields]) {
    const value = spec[field]
    if (typeof value === 'string' && value !== '') attributes.set(field, [value])
  }
  const login = attributes.first('sub') ?? metadata.name
  const created = metadata.creationTimestamp === undefined ? undefined : new Date(metadata.creationTimestamp)
  return {
    userID: login,
    id: login,
    attributes,
    groups: [...new Set(textsOf(spec['groups']))],
    version: metadata.resourceVersion,
    ...(created === undefined || Number.isNaN(created.getTime()) ? {} : { created }),
  }
}

/** The attributes that a caller may change. BAD_REQUEST for a `sub` that isn't the login. */
export function ownAttributes(user: User, attributes: readonly string[]): string[] {
  const sub = user.attributes.values('sub')
  const asksForSub = attributes.some((name) => name.toLowerCase() === 'sub')
  if (asksForSub && sub.some((value) => value !== user.userID)) {
    throw new GatewayError('BAD_REQUEST', `"sub" of a User object is the login: "${user.userID}"`)
  }
  return attributes.filter((name) => !ownFields.some((field) => field === name.toLowerCase()))
}

/** The object of this user, with the foreign fields of `before`. BAD_REQUEST, by name, for values that it can't hold. */
export function writeUser(user: User, namespace: string, before?: ClusterObject): Readonly<Record<string, unknown>> {
  checkText('the login', user.userID, directoryLimits.nameBytes)
  const name = objectName(user.userID)
  const {
    sub,
    uid,
    first_name,
    last_name,
    email,
    attributes: _,
    groups: __,
    ...foreign
  } = recordOf(before?.content['spec'])
  const held = new Attributes()
  const fields: Record<string, string> = {}
  for (const [attribute, values] of user.attributes) {
    const field = plainFields.find((candidate) => candidate === attribute.toLowerCase())
    checkValues(attribute, values)
    if (ownFields.some((own) => own === attribute.toLowerCase())) continue
    if (field === undefined) held.set(attribute, values)
    else fields[field] = onlyValue(field, values)
  }
  for (const group of user.groups) checkText('a group', group, directoryLimits.nameBytes)
  const spec: Spec = {
    ...foreign,
    sub: user.userID,
    uid: name,
    ...fields,
    groups: user.groups,
    ...(held.size === 0 ? {} : { attributes: held.toObject() }),
  }
  const metadata = recordOf(before?.content['metadata'])
  return {
    ...before?.content,
    apiVersion: `${userApi.group}/${userApi.version}`,
    kind: 'User',
    metadata: { ...metadata, name, namespace },
    spec,
  }
}

function onlyValue(field: string, values: readonly string[]): string {
  const [value, second] = values
  if (second !== undefined) throw new GatewayError('BAD_REQUEST', `"${field}" of a User object holds one value`)
  if (value === '') throw new GatewayError('BAD_REQUEST', `"${field}" of a User object cannot be empty text`)
  return value ?? ''
}

function checkValues(attribute: string, values: readonly string[]): void {
  checkText('the name of an attribute', attribute, directoryLimits.nameBytes)
  if (values.length > directoryLimits.valuesPerAttribute) {
    throw new GatewayError('BAD_REQUEST', `"${attribute}" has more than ${directoryLimits.valuesPerAttribute} values`)
  }
  for (const value of values) checkText(`"${attribute}"`, value, directoryLimits.valueBytes)
}

/** Half a surrogate pair would come back as another character. */
function checkText(what: string, value: string, mostBytes: number): void {
  if (!value.isWellFormed()) throw new GatewayError('BAD_REQUEST', `${what} holds half a surrogate pair`)
  if (Buffer.byteLength(value) > mostBytes) throw new GatewayError('BAD_REQUEST', `${what} is over ${mostBytes} bytes`)
}

const recordOf = (value: unknown): Spec =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Spec) : {}
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((member) => typeof member === 'string') : []

const validLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const longestName = 253

/**
 * The name of the object that a login is kept in. Logins that differ in ASCII letter case only share one; no others do.
 * It is OpenUnison's name, where the API server accepts it: letters, dots and hyphens as they are, every other UTF-16
 * unit as `x-<decimal>-x`. Otherwise it is a hash.
 */
export function objectName(login: string): string {
  const folded = foldLogin(login)
  const name = folded.replace(/[^a-z.-]/g, (unit) => `x-${unit.charCodeAt(0)}-x`)
  const isValid = name.length <= longestName && name.split('.').every((label) => validLabel.test(label))
  return isValid ? name : `u-${createHash('sha256').update(folded).digest('hex')}`
}

/** Logins are compared in this form. */
export const foldLogin = (login: string): string => login.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
