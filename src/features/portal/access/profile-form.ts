import type { Attributes } from '#identity/attributes.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import type { FilterPlace } from '#sdk/filter/filter.ts'

/** The profile that users have in a portal, for filters that show and change the profiles of others. */
export interface ProfileForm {
  readonly loginAttribute: string
  /** The attribute with roles; undefined if groups are read from the directory. */
  readonly roleAttribute: string | undefined
  /** The workflow that saves a profile; undefined if none does. */
  readonly workflow: string | undefined
  /** The fields of a user with these attributes, and whether they may be changed. */
  viewOf(user: Attributes): ProfileView
  /** Checks new values by field; fields without one stay as they are. */
  change(user: Attributes, values: Readonly<Record<string, string>>): ProfileChange
}

export interface ProfileView {
  readonly fields: readonly FormAttributeView[]
  readonly canEdit: boolean
}

export interface ProfileChange {
  /** For users; empty if all values can be saved. */
  readonly errors: readonly string[]
  /** Fields with another value than before; an empty text clears the field. */
  readonly changed: ReadonlyMap<string, string>
  /** All fields after the change, since a workflow removes attributes that it does not get. */
  readonly whole: Attributes
}

/** A profile with the URL that serves it. */
export interface ServedProfile extends FilterPlace {
  readonly form: ProfileForm
}

/** What a filter with the profile of users offers. */
export interface OffersProfile {
  readonly profile: ProfileForm
}

export const offersProfile = <F extends object>(filter: F): filter is F & OffersProfile => 'profile' in filter
