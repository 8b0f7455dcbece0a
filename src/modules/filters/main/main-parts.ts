import type { UserRef } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { FormAttribute } from '#modules/shared/forms/form-attribute.ts'
import { anothersLoginText, hasOwnLogin } from '#modules/shared/login/own-login.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { MainSettings } from './main-settings.ts'
import type { People } from './people.ts'
import type { Visibility } from './visibility.ts'

/** What the parts of the API share. */
export interface MainParts {
  readonly settings: MainSettings
  readonly host: FilterHost
  readonly visibility: Visibility
  readonly people: People
}

/** By which the portal knows the caller; the authenticated name where the caller has no such attribute. */
export const loginOf = (parts: Pick<MainParts, 'settings'>, subject: Subject): string => userOf(parts, subject).login

/** Whether no other user of the directory has the login that the portal knows the caller by. */
export const ownsLogin = (parts: MainParts, subject: Subject): Promise<boolean> =>
  hasOwnLogin(userOf(parts, subject), parts.host.directory, parts.settings.given.uidAttributeName)

/**
 * The login that the portal knows the caller by. Throws ACCESS_DENIED where it belongs to another user, with an audit
 * entry where the caller would have started a workflow.
 */
export async function requireOwnLogin(
  parts: MainParts,
  { subject, request }: Pick<Exchange, 'subject' | 'request'>,
  workflow?: string,
): Promise<string> {
  const login = loginOf(parts, subject)
  if (await ownsLogin(parts, subject)) return login
  if (workflow !== undefined) await auditRefusal(parts, { subject, request }, workflow)
  throw new GatewayError('ACCESS_DENIED', `the login "${login}" of ${subject.identity} belongs to another user`, {
    publicText: anothersLoginText,
  })
}

/** Writes into the audit that the caller would have started the workflow for the user who has the caller's login. */
export function auditRefusal(
  parts: MainParts,
  { subject, request }: Pick<Exchange, 'subject' | 'request'>,
  name: string,
): Promise<void> {
  const login = loginOf(parts, subject)
  const refused = [{ kind: 'entry', attribute: 'subject', value: login }] as const
  return parts.host.runs.refuse({ name, caller: subject.uid, subject: login, requestId: request.id, refused })
}

/** The fields that the subject sees. */
export function shownAttributes({ attributes, helper }: MainSettings, subject: Subject): readonly FormAttribute[] {
  if (helper === undefined) return attributes
  const allowed = helper.attributesOf(subject)
  return attributes.filter(({ name }) => allowed.has(name))
}

/** The configuration and, where there is one, the helper must both say so. */
export const mayEdit = ({ given, helper }: MainSettings, subject: Subject): boolean =>
  given.canEditUser && (helper?.mayEdit(subject) ?? true)

export interface Rights {
  readonly delegate: boolean
  readonly preApprove: boolean
}

/** Whoever may pre-approve may request for others, since there is nothing to pre-approve otherwise. */
export function rightsOf({ given, helper }: MainSettings, subject: Subject): Rights {
  const may = (setting: 'YES' | 'NO' | 'CUSTOM', ask: ((subject: Subject) => boolean) | undefined): boolean =>
    setting === 'CUSTOM' ? (ask?.(subject) ?? false) : setting === 'YES'
  const preApprove = may(given.canPreApprove, helper?.mayPreApprove)
  return { preApprove, delegate: preApprove || may(given.canDelegate, helper?.mayDelegate) }
}

/** The caller as the portal stores and compares users. */
export const userOf = (parts: Pick<MainParts, 'settings'>, subject: Subject): UserRef =>
  callerRef(subject, parts.settings.given.uidAttributeName)
