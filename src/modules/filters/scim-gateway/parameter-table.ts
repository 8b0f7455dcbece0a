import { Dn } from '#identity/dn.ts'
import { sourceTypes } from '#sdk/mapping.ts'
import { choice, flag, list, parsed, text } from '#sdk/parameter-types.ts'

const source = (about: string) => text({ about })
const sourceType = choice(sourceTypes, {
  about: 'How the source is read: user, static, composite or custom.',
  fallback: 'user',
})
const targetType = text({ about: 'Accepted and not used: values are texts.' })

export const parameterTable = {
  lookupFromLDAP: flag({ about: 'Whether look-ups go through the virtual directory instead of a target.' }),
  searchBase: parsed('name', (value) => Dn.parse(value), {
    about: 'Where the virtual directory is searched; needed with lookupFromLDAP "true".',
  }),
  lookupTarget: text({
    about: 'The target that users and groups are looked up in; needed unless lookupFromLDAP is "true".',
    reference: 'target',
  }),
  uidAttributeName: text({ about: "The attribute that holds a user's login.", required: true }),
  idAttributeName: text({
    about: "The attribute that holds a user's id; where it is the login's own attribute, logins are the ids.",
  }),
  lookupAttributeName: text({ about: 'The attribute that users are looked up by; uidAttributeName when absent.' }),
  workflowName: text({ about: 'The workflow that creates and changes a user.', required: true, reference: 'workflow' }),
  deleteUserWorkflowName: text({
    about: 'The workflow that deletes a user; without it, deleting answers 501.',
    reference: 'workflow',
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
  groupLookupAttributeName: text({ about: 'The attribute that groups are looked up by.', fallback: 'name' }),
  groupIdName: text({ about: "The attribute that holds a group's id; the group's name when absent." }),
  groupDisplayName: text({ about: "The attribute shown as a group's displayName; the group's name when absent." }),
  groupMemberAttributeName: text({
    about: 'The attribute that holds the members of a group in the virtual directory.',
    fallback: 'uniqueMember',
  }),
  scim2tremolo: list({ about: 'Internal attributes that are made from SCIM attributes.' }),
  'scim2tremolo.<attribute>.source': source('Where the internal attribute comes from.'),
  'scim2tremolo.<attribute>.sourceType': sourceType,
  'scim2tremolo.<attribute>.targetType': targetType,
  tremolo2scim: list({ about: 'SCIM attributes that are shown, made from internal attributes.' }),
  'tremolo2scim.<attribute>.source': source('Where the SCIM attribute comes from.'),
  'tremolo2scim.<attribute>.sourceType': sourceType,
  'tremolo2scim.<attribute>.targetType': targetType,
  userFilterScim2Ldap: list({
    about: 'Which internal attribute a SCIM attribute is filtered by, as scim=internal; comma-separated or repeated.',
  }),
  groupFilterScim2Ldap: list({ about: 'The same for groups.' }),
} as const
