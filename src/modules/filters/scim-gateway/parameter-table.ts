import { Dn } from '#identity/dn.ts'
import { parseTrustedUrl } from '#kernel/address.ts'
import { sourceTypes } from '#sdk/mapper/mapping.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'

/** Where SCIM clients expect different behavior; everything else is accepted from all of them. */
export interface ClientProfile {
  /** The answer to a PATCH of a group: the whole group, or 204, whose cost does not depend on the group's size. */
  readonly groupPatch: 'resource' | 'noContent'
  /** Whether a POST for an inactive user reactivates it or is a conflict, as for an active one. */
  readonly rehire: 'reactivate' | 'refuse'
  /** Whether `remove` of `members` without values, which empties the group, is allowed. */
  readonly removeAllMembers: 'allow' | 'refuse'
  /** Booleans in quotes, unknown attributes and unknown schemas are errors instead of accepted or ignored. */
  readonly strict: boolean
  /** Attributes by the client's own names for them in filters, in lower case. */
  readonly aliases: ReadonlyMap<string, string>
  /** A JSON media type that the client uses besides those of SCIM, in lower case. */
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
  /** For the SCIM API of AWS IAM Identity Center, which refuses a change of all members at once. */
  aws: { ...tolerant, rehire: 'refuse', removeAllMembers: 'refuse' },
  /** For GitHub's SCIM API, which has `external_id` in filters and its own media type. */
  github: {
    ...tolerant,
    rehire: 'refuse',
    aliases: new Map([['external_id', 'externalId']]),
    mediaType: /^application\/vnd\.github(?:\.[a-z0-9-]+)*\+json$/,
  },
  /** For Slack's SCIM API, which has `email` in filters. */
  slack: { ...tolerant, aliases: new Map([['email', 'emails']]) },
  strict: { ...tolerant, groupPatch: 'resource', rehire: 'refuse', strict: true },
} as const satisfies Record<string, ClientProfile>

export type ClientName = keyof typeof clientProfiles
export const clientNames = Object.keys(clientProfiles) as ClientName[]

const source = (about: string) => text({ about })
const sourceType = choice(sourceTypes, {
  about: 'How the source is read: user, static, composite or custom.',
  fallback: 'user',
})
const targetType = text({ about: 'Accepted and not used: values are texts.' })

function plainName(value: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(value)) return value
  throw new Error('must be letters, digits, dots, dashes and underscores')
}

function bearerToken(value: string): string {
  if (/^[\x21-\x7e]{1,4096}$/.test(value)) return value
  throw new Error('must be visible ASCII characters')
}

export const parameterTable = {
  lookupFromLDAP: flag({ about: 'Whether look-ups go through the virtual directory instead of a target.' }),
  searchBase: parsed('name', (value) => Dn.parse(value), {
    about: 'The base of searches in the virtual directory; required with lookupFromLDAP "true".',
  }),
  lookupTarget: text({
    about: 'The target of users and groups; required unless lookupFromLDAP is "true".',
    reference: 'target',
  }),
  mapping: choice(['lines', 'scim'], {
    about: 'Whether only mapping lines map SCIM attributes, or also the built-in mapping.',
    fallback: 'lines',
  }),
  userSchema: list({
    about: 'Schemas of users beyond the core and enterprise ones, as in RFC 7643 7; may be repeated.',
  }),
  groupSchema: list({ about: 'The same for groups.' }),
  uidAttributeName: text({
    about: 'The attribute with the login of a user; required unless the mapping is scim, where it is userName.',
  }),
  idAttributeName: text({
    about:
      "The attribute that holds a user's id; `id` for the target's own, the login's attribute where logins are the ids.",
  }),
  lookupAttributeName: text({
    about:
      'The attribute that users are looked up by in the virtual directory; uidAttributeName when absent, and with a target.',
  }),
  workflowName: text({ about: 'The workflow that creates and changes a user.', required: true, reference: 'workflow' }),
  deleteUserWorkflowName: text({
    about: 'The workflow that deletes a user; without it, deleting answers 501.',
    reference: 'workflow',
  }),
  deletedAttributeName: text({
    about: "The attribute that marks a deleted user whom the target keeps; in Gatehouse's own database when absent.",
  }),
  groupWorkflow: text({
    about: 'The workflow that adds a user to a group or removes it; without it, changing members answers 501.',
    reference: 'workflow',
  }),
  groupDeleteWorkflow: text({
    about: 'The workflow that deletes a group; without it, deleting a group answers 501.',
    reference: 'workflow',
    absentReference: 'warning',
  }),
  groupCreateWorkflow: text({
    about: 'The workflow that creates a group; without it, creating one answers 501.',
    reference: 'workflow',
  }),
  groupUpdateWorkflow: text({
    about: 'The workflow that renames a group or changes its attributes; without it, a new name is refused.',
    reference: 'workflow',
  }),
  groupNestingWorkflow: text({
    about: 'The workflow that adds a group to a group or removes it; without it, groups as members are refused.',
    reference: 'workflow',
  }),
  groupLookupAttributeName: text({ about: 'The attribute by which groups are found.', fallback: 'name' }),
  groupIdName: text({ about: 'The attribute with the id of a group; the name of the group when absent.' }),
  groupDisplayName: text({ about: "The attribute shown as a group's displayName; the group's name when absent." }),
  groupNames: choice(['unique', 'shared'], {
    about:
      'Whether two groups may have one displayName; shared needs groupDisplayName, and the gateway then makes names unique.',
    fallback: 'unique',
  }),
  groupMemberAttributeName: text({
    about: 'The attribute with the members of a group in the virtual directory.',
    fallback: 'uniqueMember',
  }),
  unknownManager: choice(['refuse', 'accept'], {
    about:
      'Whether a manager who is not a user is refused or accepted; refuse where the built-in mapping stores managers.',
    fallback: undefined,
  }),
  ignoreUnmapped: list({
    about:
      'SCIM attributes, and URNs of extensions, that clients may send though nothing stores them; a change of any other is refused.',
  }),
  client: choice(clientNames, {
    about: 'The client to which the gateway adapts; tolerant works with all.',
    fallback: 'tolerant',
  }),
  groupPatchAnswer: choice(['noContent', 'resource'], {
    about:
      'What a PATCH of a group answers where no attributes are requested: 204, or 200 with the group and its members.',
    fallback: undefined,
  }),
  journal: wholeNumber({
    about: 'Number of calls in the request journal; 0 turns it off.',
    fallback: 1000,
    max: 100_000,
  }),
  events: parsed('name', plainName, { about: 'The stream for events about changes; none when absent.' }),
  eventsIssuer: text({ about: 'The issuer that event tokens name (iss).' }),
  eventsAudience: text({ about: 'The receiver that event tokens name (aud).' }),
  eventsPushUrl: parsed('URL', parseTrustedUrl, {
    about: 'The address for pushed events: https, or http on this machine; without it, receivers poll.',
  }),
  eventsPushToken: parsed('token', bearerToken, {
    about: 'The bearer token that pushes are sent with.',
    secret: true,
  }),
  eventsKey: parsed('name', plainName, { about: 'The signing key of the data folder; scim-events when absent.' }),
  eventsPayload: choice(['notice', 'full'], {
    about: 'Whether events name the changed attributes, or contain the resource; for a patch, the patch.',
    fallback: 'notice',
  }),
  scim2tremolo: list({ about: 'Internal attributes, computed from SCIM attributes.' }),
  'scim2tremolo.<attribute>.source': source('Where the internal attribute comes from.'),
  'scim2tremolo.<attribute>.sourceType': sourceType,
  'scim2tremolo.<attribute>.targetType': targetType,
  tremolo2scim: list({ about: 'SCIM attributes, computed from internal attributes.' }),
  'tremolo2scim.<attribute>.source': source('Where the SCIM attribute comes from.'),
  'tremolo2scim.<attribute>.sourceType': sourceType,
  'tremolo2scim.<attribute>.targetType': targetType,
  userFilterScim2Ldap: list({
    about: 'Which internal attribute a SCIM attribute is filtered by, as scim=internal; comma-separated or repeated.',
  }),
  groupFilterScim2Ldap: list({ about: 'The same for groups.' }),
} as const
