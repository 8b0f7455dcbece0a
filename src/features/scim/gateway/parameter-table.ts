import { type ClientName, clientNames } from '#features/scim/contract/client-names.ts'
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
} as const satisfies Record<ClientName, ClientProfile>

const source = (about: string) => text({ about, requirement: 'for each listed' })
const sourceType = choice(sourceTypes, {
  about:
    'How the source is read: `user` (an attribute), `static` (the text itself), `composite` (a template with `${attribute}`) or `custom` (a mapper).',
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
  lookupFromLDAP: flag({
    about: 'Whether users and groups are looked up in the virtual directory instead of a target.',
  }),
  searchBase: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'The name below which the virtual directory is searched.',
    requirement: 'with `lookupFromLDAP`',
  }),
  lookupTarget: text({
    about: 'The target that users and groups are looked up in.',
    requirement: 'unless `lookupFromLDAP`',
    reference: 'target',
  }),
  mapping: choice(['lines', 'scim'], {
    about:
      '`lines`: SCIM attributes are mapped by `scim2tremolo` and `tremolo2scim` only. `scim`: all of them are mapped by the [built-in mapping](#built-in-mapping), and by lines where there are any.',
    fallback: 'lines',
  }),
  'list.<attribute>': text({
    about:
      'With `mapping: scim`: the internal attributes of a [list in plain attributes](#lists-in-plain-attributes), as pairs `type=attribute`, such as `work=mail,home=homeMail`.',
  }),
  userSchema: list({
    about: 'A [schema](#schemas) of users beyond the core and enterprise ones; may be repeated.',
  }),
  groupSchema: list({ about: 'The same for groups.' }),
  resourceTypes: list({
    about:
      'The names of [ResourceType](../kinds/ResourceType.md) objects, whose resources this gateway serves beside users and groups; may be repeated.',
    reference: 'resource type',
  }),
  uidAttributeName: text({
    about: 'The internal attribute that holds the login.',
    requirement: 'unless `mapping` is `scim` (`userName`)',
  }),
  idAttributeName: text({
    about:
      "The attribute with the id of a user; `id` for the target's own. If it is the attribute of the login, logins are the ids, even if the target has other ids. A user without a value has the login as the id.",
    requirement: 'no, `lookupAttributeName` if that is not the attribute of the login, otherwise `id`',
  }),
  lookupAttributeName: text({
    about:
      'The attribute that users are looked up by. If it is not the attribute of the login, its values are the ids, unless `idAttributeName` names others.',
    requirement: 'no, `uidAttributeName`',
  }),
  workflowName: text({ about: 'The workflow that creates and changes a user.', required: true, reference: 'workflow' }),
  deleteUserWorkflowName: text({
    about:
      'The workflow that deletes a user, or [deactivates](#deleted-users-whom-the-target-keeps) it. Without it, deleting answers 501.',
    reference: 'workflow',
  }),
  deletedAttributeName: text({
    about:
      "The internal attribute that marks a deleted user whom the target keeps. Without it, the marks are in Gatehouse's own database.",
  }),
  groupWorkflow: text({
    about: 'The workflow that adds one user to a group or removes it. Without it, changing members answers 501.',
    reference: 'workflow',
  }),
  groupDeleteWorkflow: text({
    about:
      'The workflow that deletes a group. Without it, or where it does not exist (`check` warns), deleting a group answers 501.',
    reference: 'workflow',
    absentReference: 'warning',
  }),
  groupCreateWorkflow: text({
    about: 'The workflow that creates a group, without members. Without it, creating one answers 501.',
    reference: 'workflow',
  }),
  groupUpdateWorkflow: text({
    about:
      'The workflow that renames a group, changes its attributes, and compares its version. Without it, a new name or attribute is refused with `mutability`.',
    reference: 'workflow',
  }),
  groupNestingWorkflow: text({
    about:
      "The workflow that adds a group to a group or removes it. Without it, or where the target can't nest groups, a group as a member is refused with 400 `invalidValue`.",
    reference: 'workflow',
  }),
  groupLookupAttributeName: text({
    about: 'The attribute that groups are looked up by in the virtual directory.',
    fallback: 'name',
  }),
  groupIdName: text({
    about:
      "The attribute that holds a group's id; `id` for the target's own. If it is `groupLookupAttributeName` or `name`, names are the ids. A group of a target that has no value has the target's own id, or its name.",
    requirement: 'no, in the virtual directory `groupLookupAttributeName`, otherwise `id`',
  }),
  groupDisplayName: text({ about: "The attribute shown as `displayName`; the group's name where it has no value." }),
  groupNames: choice(['unique', 'shared'], {
    about:
      'Whether two groups may have one `displayName`. Every target knows groups by their names, so `shared` needs `groupDisplayName` set to another attribute; see [Names of groups](#names-of-groups).',
    fallback: 'unique',
  }),
  groupMemberAttributeName: text({
    about: "The attribute that holds the members' names in the virtual directory.",
    fallback: 'uniqueMember',
  }),
  unknownManager: choice(['refuse', 'accept'], {
    about:
      'What happens to a [manager](#managers) who is not a user of this gateway: `refuse` answers 400, `accept` stores and shows the value as it was sent.',
    requirement: 'no, `refuse` where the built-in mapping stores `manager`, otherwise `accept`',
    fallback: undefined,
  }),
  ignoreUnmapped: list({
    about:
      'SCIM attributes, such as `name.formatted`, and URNs of extensions, with all their attributes, that clients may send and filter by though nothing stores them; a change of any other, and a filter by it, is [refused](../../guides/scim-gateway.md#what-it-decides-and-why).',
  }),
  client: choice(clientNames, {
    about:
      'The client whose habits the gateway follows where clients differ; `tolerant` works with all. See [client profiles](#client-profiles).',
    fallback: 'tolerant',
  }),
  groupPatchAnswer: choice(['noContent', 'resource'], {
    about:
      'What a PATCH of a group answers where the request names no `attributes`: `noContent` (204 with the `ETag`, for the same cost in a group of any size) or `resource` (200 with the group and all its members, unless the request has `excludedAttributes=members`). The default is `resource` for `strict` and `noContent` for all others.',
    requirement: 'no, by `client`',
    fallback: undefined,
  }),
  dryRun: choice(['allow', 'all', 'refuse'], {
    about:
      'Whether clients may ask [what a change would do](../../guides/scim-gateway.md#dry-runs). With `allow`, the answer has what the client can also read here; with `all`, everything that the workflows would do, in all systems and with values.',
    fallback: 'allow',
  }),
  requestsPerMinute: wholeNumber({
    about:
      'How many requests a client may send, counted by its authenticated identity over all gateways of the Application and all processes; each operation of a bulk request counts too. 0 is no limit. See [Rates](#rates).',
    fallback: 0,
    max: 1_000_000,
  }),
  requestBurst: wholeNumber({
    about: 'How many of them it may send at once.',
    requirement: 'no, `requestsPerMinute`',
    fallback: 0,
    max: 1_000_000,
  }),
  journal: wholeNumber({
    about: 'Number of the latest calls that the request journal keeps; 0 turns it off.',
    fallback: 1000,
    max: 100_000,
  }),
  events: parsed('name', plainName, { about: 'The stream for events about changes; none when absent.' }),
  eventsIssuer: text({ about: 'The issuer that events name (`iss`).', requirement: 'with `events`' }),
  eventsAudience: text({ about: 'The receiver that events name (`aud`).', requirement: 'with `events`' }),
  eventsPushUrl: parsed('URL', parseTrustedUrl, {
    about:
      'Where events are pushed to: `https`, or `http` on this machine. Without it they wait to be [polled](filters.EventPoll.md).',
  }),
  eventsPushToken: parsed('token', bearerToken, {
    about: 'The bearer token that pushes are sent with.',
    secret: true,
  }),
  eventsKey: parsed('name', plainName, {
    about: 'The signing key, `keys/<name>.jwk` of the data folder; created when absent.',
    fallback: 'scim-events',
  }),
  eventsPayload: choice(['notice', 'full'], {
    about:
      '`notice`: events name the attributes that changed; `full`: they hold the resource, and for a PATCH the patch.',
    fallback: 'notice',
  }),
  scim2tremolo: list({ about: 'The internal attributes that are made from SCIM attributes. Each needs a `.source`.' }),
  'scim2tremolo.<attribute>.source': source(
    'Where the internal attribute comes from: a SCIM attribute such as `userName`, `name.givenName` or `urn:…:User:department`, a text, a template or a mapper expression.',
  ),
  'scim2tremolo.<attribute>.sourceType': sourceType,
  'scim2tremolo.<attribute>.targetType': targetType,
  tremolo2scim: list({ about: 'The SCIM user attributes that are shown. Each needs a `.source`.' }),
  'tremolo2scim.<attribute>.source': source(
    'Where the SCIM attribute comes from: an internal attribute, a text, a template or a mapper expression.',
  ),
  'tremolo2scim.<attribute>.sourceType': sourceType,
  'tremolo2scim.<attribute>.targetType': targetType,
  userFilterScim2Ldap: list({
    about:
      'Pairs `scim=internal`, comma-separated or repeated: which internal attribute a filter on a SCIM attribute is about.',
  }),
  groupFilterScim2Ldap: list({ about: 'The same for groups.' }),
} as const
