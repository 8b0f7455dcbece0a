import * as z from 'zod'
import { formAttributeView } from './form-attribute.ts'

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

/** GET orgs: the branches that the one who asks may see. Where several are at the top, the root has no id. */
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

/** By uuid: `success`, or what went wrong, for people. */
export const submitResults = z.record(z.string(), z.string())

/** PUT workflows?outcomes=true, by uuid: the same, and what became of the decision that came with it. */
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

/** GET search?q=&kind=workflow|url|person (may repeat; all that are allowed when absent). */
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

/** GET favourites. Only what the caller may still see. */
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
