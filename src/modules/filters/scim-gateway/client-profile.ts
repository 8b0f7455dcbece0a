/** What truly differs between clients of SCIM; everything else is understood from all of them. */
export interface ClientProfile {
  /** The answer to a PATCH of a group: 204, which costs the same in a group of any size, or the whole group. */
  readonly groupPatch: 'resource' | 'noContent'
  /** A POST for a user who is there and inactive: brings the user back, or is a conflict as for an active one. */
  readonly rehire: 'reactivate' | 'refuse'
  /** `remove` of `members` that names none, which empties the group. */
  readonly removeAllMembers: 'allow' | 'refuse'
  /** Booleans in quotes, unknown attributes and schemas are errors instead of being understood or ignored. */
  readonly strict: boolean
  /** What the client calls attributes in filters, in lower case, and the attributes that it means. */
  readonly aliases: ReadonlyMap<string, string>
  /** A media type of JSON that the client uses beside those of SCIM, in lower case. */
  readonly mediaType?: RegExp
}

const tolerant: ClientProfile = {
  groupPatch: 'noContent',
  rehire: 'reactivate',
  removeAllMembers: 'allow',
  strict: false,
  aliases: new Map(),
}

export const clientProfiles = {
  tolerant,
  entra: { ...tolerant, rehire: 'refuse', removeAllMembers: 'refuse' },
  okta: tolerant,
  sailpoint: { ...tolerant, rehire: 'refuse' },
  onelogin: { ...tolerant, removeAllMembers: 'refuse' },
  jumpcloud: tolerant,
  google: tolerant,
  /** Clients written for the SCIM API of AWS IAM Identity Center, which refuses a change of all members at once. */
  aws: { ...tolerant, rehire: 'refuse', removeAllMembers: 'refuse' },
  /** Clients written for GitHub's SCIM API, which knows `external_id` in filters and a media type of its own. */
  github: {
    ...tolerant,
    rehire: 'refuse',
    aliases: new Map([['external_id', 'externalId']]),
    mediaType: /^application\/vnd\.github(?:\.[a-z0-9-]+)*\+json$/,
  },
  /** Clients written for Slack's SCIM API, which knows `email` in filters. */
  slack: { ...tolerant, aliases: new Map([['email', 'emails']]) },
  strict: { ...tolerant, groupPatch: 'resource', rehire: 'refuse', strict: true },
} as const satisfies Record<string, ClientProfile>

export type ClientName = keyof typeof clientProfiles
export const clientNames = Object.keys(clientProfiles) as ClientName[]
