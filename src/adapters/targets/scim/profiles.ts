/** What an application does with users or groups that its documents don't say. */
interface ResourceFacts {
  /** The attributes that it has, as filters name them; those of its documents if absent. */
  readonly attributes?: readonly string[]
  /** The attributes that a new resource must have. */
  readonly required?: readonly string[]
  /** It can only filter by one of these attributes, with `eq`. Absent: by any filter. */
  readonly filters?: readonly string[]
}

interface UserFacts extends ResourceFacts {
  /** The attributes that it accepts with a new user only. */
  readonly fixed?: readonly string[]
  /** Logins that it would change or refuse don't match; `rule` is for people. */
  readonly login?: { readonly pattern: RegExp; readonly rule: string }
  /** A new user must say that it is active. */
  readonly saysActive?: boolean
  /** Each element of `emails` needs a type, and one is primary. */
  readonly typedEmails?: boolean
  /** A DELETE only deactivates the user, or hides it too, so users are deactivated by `active` instead. */
  readonly keepsDeleted?: boolean
  /** The id is the `externalId`, which it doesn't repeat. */
  readonly idIsExternal?: boolean
}

interface GroupFacts extends ResourceFacts {
  /** A group keeps its name. */
  readonly keepsNames?: boolean
  /** A new group needs an `externalId`; its name, if it has no other. */
  readonly namesExternal?: boolean
}

/** What is known of an application beside what it says about itself. None of them has groups in groups. */
export interface ScimProfile {
  /** The application's name in messages. */
  readonly title: string
  /** It has no documents of RFC 7644 4. */
  readonly isUndescribed?: boolean
  /** In place of what its documents say. */
  readonly features?: {
    readonly patch?: boolean
    readonly bulk?: undefined
    readonly filter?: boolean
    readonly sort?: boolean
    readonly etag?: boolean
  }
  readonly users: UserFacts
  /** `none`: it has no groups. */
  readonly groups: GroupFacts | 'none'
  /** A PATCH can't name an element by a filter in its path, so a member to be removed is named by its value. */
  readonly plainPaths?: boolean
}

const little = { patch: true, bulk: undefined, filter: true, sort: false, etag: false }

/**
 * From the public documentation of each application; the reference page of the target has the links. A fact that a
 * document of the application states correctly isn't repeated.
 */
export const scimProfiles = {
  slack: {
    title: 'Slack',
    features: little,
    users: {
      required: ['emails'],
      filters: ['userName'],
      login: {
        pattern: /^[a-z0-9._-]{1,21}$/,
        rule: 'at most 21 lower-case letters, digits, periods, hyphens and underscores',
      },
      keepsDeleted: true,
    },
    groups: { filters: ['displayName'] },
  },
  github: {
    title: 'GitHub',
    isUndescribed: true,
    features: little,
    users: {
      attributes: ['active', 'displayName', 'emails', 'groups', 'name', 'roles', 'userName'],
      required: ['externalId', 'displayName', 'emails'],
      filters: ['userName', 'externalId', 'id', 'displayName'],
      saysActive: true,
      typedEmails: true,
    },
    groups: {
      attributes: ['displayName', 'members'],
      filters: ['externalId', 'id', 'displayName'],
      namesExternal: true,
    },
    plainPaths: true,
  },
  gitlab: {
    title: 'GitLab',
    isUndescribed: true,
    features: little,
    users: {
      attributes: ['active', 'emails', 'name.formatted', 'userName'],
      required: ['externalId', 'emails', 'name'],
      filters: ['id', 'externalId', 'userName'],
      fixed: ['userName', 'emails', 'name'],
      typedEmails: true,
      idIsExternal: true,
    },
    groups: 'none',
    plainPaths: true,
  },
  atlassian: {
    title: 'Atlassian',
    features: { bulk: undefined, sort: false, etag: false },
    users: {
      required: ['emails'],
      filters: ['userName', 'externalId'],
      typedEmails: true,
      keepsDeleted: true,
    },
    groups: { filters: ['displayName'], keepsNames: true },
  },
} as const satisfies Readonly<Record<string, ScimProfile>>

export type ProfileName = keyof typeof scimProfiles

export const profileNames = Object.keys(scimProfiles) as readonly ProfileName[]

/** For a server that does what it says. */
export const standardProfile: ScimProfile = { title: 'the server', users: {}, groups: {} }

export const profileOf = (name: ProfileName | undefined): ScimProfile =>
  name === undefined ? standardProfile : scimProfiles[name]

/** None for an application without groups. */
export const groupFacts = ({ groups }: ScimProfile): GroupFacts => (groups === 'none' ? {} : groups)
