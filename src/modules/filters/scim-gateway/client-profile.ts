/** What truly differs between clients of SCIM; everything else is understood from all of them. */
export interface ClientProfile {
  /** The answer to a PATCH of a group: the whole group, or 204, which spares reading a large one. */
  readonly groupPatch: 'resource' | 'noContent'
  /** A POST for a user who is there and inactive: brings the user back, or is a conflict as for an active one. */
  readonly rehire: 'reactivate' | 'refuse'
  /** `remove` of `members` that names none, which empties the group. */
  readonly removeAllMembers: 'allow' | 'refuse'
  /** Booleans in quotes, unknown attributes and schemas are errors instead of being understood or ignored. */
  readonly strict: boolean
}

const tolerant: ClientProfile = {
  groupPatch: 'resource',
  rehire: 'reactivate',
  removeAllMembers: 'allow',
  strict: false,
}

export const clientProfiles = {
  tolerant,
  entra: { ...tolerant, groupPatch: 'noContent', rehire: 'refuse', removeAllMembers: 'refuse' },
  okta: { ...tolerant, groupPatch: 'noContent' },
  sailpoint: { ...tolerant, rehire: 'refuse' },
  onelogin: { ...tolerant, removeAllMembers: 'refuse' },
  jumpcloud: tolerant,
  google: tolerant,
  strict: { ...tolerant, rehire: 'refuse', strict: true },
} as const satisfies Record<string, ClientProfile>

export type ClientName = keyof typeof clientProfiles
export const clientNames = Object.keys(clientProfiles) as ClientName[]
