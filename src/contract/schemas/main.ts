import * as z from 'zod'

/** An item of a list that a person chooses from. */
export const listItem = z.object({
  name: z.string().describe('Label of the item'),
  value: z.string().describe('Value of the item'),
  num: z.int().describe('Position of the item in the order, from 0'),
})

/** How a field is shown: one line, several lines, one line with suggestions, a choice. */
export const formAttributeType = z.enum(['text', 'text-area', 'text-list', 'list'])

/** One field of a form, as the registration page and the profile page get it. */
export const formAttributeView = z.object({
  name: z.string().describe('Attribute name'),
  displayName: z.string().describe('Display label'),
  readOnly: z.boolean().describe('true if the value is read-only'),
  required: z.boolean().describe('true if the value must be in the request'),
  regEx: z
    .string()
    .describe('Regular expression usable to validate the value: RE2 syntax, and the whole value must match')
    .optional(),
  regExFailedMsg: z.string().describe('What is said when it does not match').optional(),
  minChars: z.int().describe('Minimum number of characters; absent or 0: none').optional(),
  maxChars: z.int().describe('Maximum number of characters; absent or 0: none').optional(),
  unique: z.boolean().describe('true if only one value of this attribute is allowed in the datastore'),
  type: formAttributeType.describe('How the field is shown'),
  values: z
    .array(listItem)
    .describe('Allowed values; empty where anything may be typed, or where the list has to be searched'),
  show: z.boolean().describe('true if the attribute is shown'),
})

/** The body of every failure. */
export const mainErrors = z.object({
  errors: z.array(z.string()).describe('For people.'),
  code: z.string().optional(),
  requestId: z.string().optional(),
})

/** GET config. */
export const mainConfig = z.object({
  displayNameAttribute: z.string(),
  uidAttributeName: z.string(),
  frontPage: z.object({
    title: z.string(),
    text: z.string(),
  }),
  canEditUser: z.boolean().describe('For the one who asks.'),
  showPortalOrgs: z.boolean(),
  logoutURL: z.string(),
  enableApprovals: z.boolean(),
  attributes: z
    .record(z.string(), formAttributeView)
    .describe('The fields of the profile that the one who asks may see, by name.'),
  roleAttribute: z.string().optional(),
  warnMinutesLeft: z.int(),
  requireReasons: z.boolean(),
  reasonIsList: z.boolean(),
  reasons: z.array(z.string()),
  startPage: z.string(),
  hidePages: z.array(z.string()),
  themePrimaryMain: z.string(),
  themePrimaryDark: z.string(),
  themePrimaryLight: z.string(),
  themeSecondaryMain: z.string(),
  themeSecondaryDark: z.string(),
  themeSecondaryLight: z.string(),
  headerTitle: z.string(),
  errorColor: z.string(),
  groupsAreJson: z.boolean(),
  groupsFields: z.array(z.string()),
  attributeNameList: z.array(z.string()).describe('The order of `attributes`.'),
  createsUnknownUsers: z.boolean().describe('Requests for people who do not exist make them.'),
  administrator: z.boolean().describe('The one who asks sees incidents and the SCIM journal.'),
  canSearchPeople: z.boolean().describe('Whether the one who asks finds people by `search`.'),
})

export const attributeValues = z.object({
  name: z.string(),
  values: z.array(z.string()),
  dataType: z.literal('string'),
})

/** GET user, and the answer to PUT user. */
export const userData = z.object({
  uid: z.string().optional(),
  dn: z.string(),
  attributes: z.array(attributeValues),
  groups: z.array(z.string()),
})

/** GET orgs: the branches that the caller may see. If several are at the top, the root has no id. */
export const organization = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  showInPortal: z.boolean(),
  showInRequest: z.boolean(),
  showInReports: z.boolean(),
  get subOrgs() {
    return z.array(organization)
  },
})

/** GET workflows/org/{orgId}: a list of these. */
export const workflowListItem = z.object({
  uuid: z.string().describe('Another one each time. A request with it is made once, however often it is sent.'),
  name: z.string(),
  label: z.string(),
  description: z.string(),
  encryptedParams: z
    .string()
    .describe('Opaque token for the parameters of this row; only for the caller, and valid for a short time.')
    .optional(),
  filterAnnotations: z.record(z.string(), z.string()),
  accessEnds: z
    .object({
      required: z.boolean(),
      longestSeconds: z.int().describe('From the request on; absent where there is no limit.').optional(),
    })
    .describe('Present if the requester chooses an expiry date.')
    .optional(),
})

/** GET workflows/candelegate. */
export const delegationRights = z.object({
  canDelegate: z.boolean(),
  canPreApprove: z.boolean(),
  uuid: z.string().optional(),
})

/** By uuid: `success`, or an error text for people. */
export const submitResults = z.record(z.string(), z.string())

/** PUT workflows?outcomes=true, by uuid: the same, and the result of the decision that came with it. */
export const submitOutcome = z.object({
  result: z.string(),
  decision: z
    .enum(['taken', 'left', 'none'])
    .describe(
      "Only of a line with a decision that was submitted. `taken`: about everybody's first approval that there was; `left`: at least one was not the requester's to decide, or is still to come, and waits for others; `none`: there was nothing to decide.",
    )
    .optional(),
})

export const submitOutcomes = z.record(z.string(), submitOutcome)

/** GET urls and urls/org/{orgId}: a list of these. */
export const portalLink = z.object({
  name: z.string(),
  label: z.string(),
  org: z.string(),
  url: z.string(),
  icon: z.string().describe('A PNG in base64; empty where there is none.'),
})

/** GET search?q=&kind=workflow|url|person. `kind` may repeat; absent means all allowed kinds. */
export const searchResults = z.object({
  workflows: z.array(
    z.object({
      name: z.string(),
      label: z.string(),
      description: z.string(),
      org: z.string().describe('Empty for one of every org.'),
    }),
  ),
  urls: z.array(portalLink),
  people: z.array(
    z.object({
      uid: z.string(),
      displayName: z.string(),
    }),
  ),
  more: z.boolean().describe('There are more than are shown.'),
})

export const markedKind = z.enum(['url', 'workflow'])

export const markedItem = z.object({
  kind: markedKind,
  name: z.string(),
  label: z.string(),
  at: z.string(),
})

/** GET favourites. Only items that the caller may still see. */
export const markedItems = z.object({
  favourites: z.array(markedItem),
  recent: z.array(markedItem).describe('Latest first.'),
})

/** GET access. */
export const timedAccess = z.object({
  access: z.array(
    z.object({
      id: z.string(),
      target: z.string(),
      kind: z.enum(['user', 'group']),
      name: z.string(),
      granted: z.string(),
      expires: z.string(),
    }),
  ),
})

/** The parameters that the caller has to fill in before running a report: days or times, and a login. */
export const reportParameter = z.enum(['beginDate', 'endDate', 'userKey'])

export const reportInfo = z.object({
  name: z.string(),
  description: z.string(),
  orgID: z.string(),
  parameters: z.array(reportParameter),
})

/** GET reports/org/{orgId}. */
export const reportList = z.object({
  reports: z.array(reportInfo),
})

export const reportGroup = z.object({
  header: z
    .record(z.string(), z.string())
    .describe(
      'By header field; empty where the report has no groups. A field without a value is left out, also in the rows.',
    ),
  data: z.array(z.record(z.string(), z.string())).describe('By data field.'),
})

/**
 * GET reports/{name}?beginDate=&endDate=&userKey=, with exactly the parameters that the report declares. Times are
 * milliseconds since 1970, or ISO 8601; a date in endDate includes that whole day (UTC). `&format=csv` and
 * `&format=xlsx` return a file instead, `&excel=true` a ReportReference.
 */
export const reportResult = z.object({
  name: z.string(),
  description: z.string(),
  headerFields: z.array(z.string()),
  dataFields: z.array(z.string()),
  grouping: z.array(reportGroup),
  truncated: z.literal(true).describe('There are more rows than are shown. Absent when there are not.').optional(),
})

/** The file is at `reports/excel/{reportid}/{any file name}` for ten minutes, for this caller only. */
export const reportReference = z.object({
  reportid: z.string(),
})
