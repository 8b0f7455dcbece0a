import type { UserRef } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import type { FormAttribute } from '#sdk/form-attribute.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { MainSettings } from './main-settings.ts'
import type { People } from './people.ts'
import type { Visibility } from './visibility.ts'

/** What the parts of the API share. */
export interface MainParts {
  readonly settings: MainSettings
  readonly host: ModuleHost
  readonly visibility: Visibility
  readonly people: People
}

/** By which the portal knows the caller; the authenticated name where the caller has no such attribute. */
export const loginOf = (parts: Pick<MainParts, 'settings'>, subject: Subject): string => userOf(parts, subject).login

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
