import { formAttributeRows } from '#modules/shared/forms/form-attribute.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import type { Parameter } from '#sdk/module/parameters.ts'

const colour = (about: string): Parameter<string | undefined> =>
  parsed(
    'colour',
    (value) => {
      if (/^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(value)) return value
      throw new Error(`must be a colour such as #ac1622, not "${value}"`)
    },
    { about },
  )

/** Of the shared rows, those that a profile has. */
const profileRows = {
  '<attribute>.displayName': formAttributeRows['<attribute>.displayName'],
  '<attribute>.readOnly': formAttributeRows['<attribute>.readOnly'],
  '<attribute>.required': formAttributeRows['<attribute>.required'],
  '<attribute>.regEx': formAttributeRows['<attribute>.regEx'],
  '<attribute>.regExFailedMsg': formAttributeRows['<attribute>.regExFailedMsg'],
  '<attribute>.minChars': formAttributeRows['<attribute>.minChars'],
  '<attribute>.maxChars': formAttributeRows['<attribute>.maxChars'],
  '<attribute>.mxnChars': formAttributeRows['<attribute>.mxnChars'],
  '<attribute>.type': formAttributeRows['<attribute>.type'],
  '<attribute>.values': formAttributeRows['<attribute>.values'],
}

const whoMay = ['NO', 'YES', 'CUSTOM'] as const

export const parameters = {
  displayNameAttribute: text({ about: 'The attribute with the name that the portal shows for users.', required: true }),
  'frontPage.title': text({ about: 'The title of the front page.', required: true }),
  'frontPage.text': text({ about: 'The text of the front page.', required: true }),
  canEditUser: flag({ about: 'Whether users may change their profile.', required: true }),
  workflowName: text({ about: 'The workflow that saves a profile.', required: true, reference: 'workflow' }),
  uidAttributeName: text({ about: 'The attribute with the login.', required: true }),
  showPortalOrgs: flag({ about: 'Whether the front page shows the tree of orgs.', required: true }),
  logoutURL: text({ about: 'The logout path or address.', required: true }),
  warnMinutesLeft: wholeNumber({
    about: 'Minutes before the end of a session at which users are warned.',
    required: true,
    fallback: 0,
    max: 10_000,
  }),
  attributeNames: list({ about: 'The fields of the profile, in their order.', required: true }),
  /** In front of the fields' own rows, since `approvals.displayName` would be one of those. */
  'approvals.<name>': text({ about: 'The label under which approvers see that attribute or parameter.' }),
  ...profileRows,
  roleAttribute: text({ about: 'The attribute with roles; without it, groups are read from the directory.' }),
  loadPortalGroupsClassName: text({ about: 'Not supported: groups are looked up in the directory.' }),
  requireReason: flag({ about: 'Whether a request needs a reason.', fallback: true }),
  canDelegate: choice(whoMay, {
    about: 'Whether users may request for others: `YES`, `NO`, or `CUSTOM`, which uses the UI helper.',
    fallback: 'NO',
  }),
  canPreApprove: choice(whoMay, {
    about: 'Whether users who request for others may decide the first approval at once: `YES`, `NO` or `CUSTOM`.',
    fallback: 'NO',
  }),
  jitWorkflow: text({
    about: 'The workflow that creates a user who is not in the directory and for whom access is requested.',
    reference: 'workflow',
  }),
  enableApprovals: flag({ about: 'Whether approvals are served.', fallback: true }),
  approvalAttributeNames: list({
    about: 'The attributes of a user that approvers see; required if approvals are enabled.',
  }),
  approvalRequestAttributeNames: list({ about: 'The parameters of a request that approvers see.' }),
  showChanges: flag({
    about:
      'Whether approvers see what approving would change: what targets hold now of what is to change, and what after it.',
    fallback: true,
  }),
  uiHelperClassName: text({
    about: 'The class that decides who may edit, request for others and pre-approve: `FilterHelper`.',
  }),
  'uihelper.params': list({
    about:
      "The helper's settings, each as `name=value`: `allowedFilters`, `filterMap` (`filter=attribute,attribute`), `applyToDelegation`, `applyToPreApproval`.",
  }),
  reasonIsList: flag({ about: 'Whether a reason must be one of `reasons`.' }),
  reasons: list({ about: 'The reasons to choose from.' }),
  startPage: choice(['front-page', 'request-access', 'ops'], {
    about: 'The page that users see first.',
    fallback: 'front-page',
  }),
  hidePages: list({ about: 'Pages that are not shown.' }),
  themePrimaryMain: colour('A colour of the portal.'),
  themePrimaryDark: colour('A colour of the portal.'),
  themePrimaryLight: colour('A colour of the portal.'),
  themeSecondaryMain: colour('A colour of the portal.'),
  themeSecondaryDark: colour('A colour of the portal.'),
  themeSecondaryLight: colour('A colour of the portal.'),
  errorColor: colour('The colour of errors.'),
  headerTitle: text({ about: "The portal's title.", fallback: 'Gatehouse' }),
  groupsAreJson: flag({ about: 'Whether groups come as one JSON text, to be shown as a table.' }),
  groupFields: list({ about: 'The columns of that table.' }),
  administrators: list({
    about:
      'Rules for administrators, as `scope;constraint`; one must pass. Administrators see all runs, incidents and the SCIM journal, and can retry, skip and cancel runs. Without rules there are none.',
  }),
  scimJournals: list({ about: 'The Applications whose journals administrators see; all when absent.' }),
}
