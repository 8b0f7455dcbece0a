import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { formAttributeView } from '#sdk/contract/forms.ts'
import { theme } from '#sdk/contract/theme.ts'

/** GET config. */
export const mainConfig = z.object({
  displayNameAttribute: z.string(),
  uidAttributeName: z.string(),
  frontPage: z.object({ title: z.string(), text: z.string() }),
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
  ...theme.shape,
  headerTitle: z.string(),
  groupsAreJson: z.boolean(),
  groupsFields: z.array(z.string()),
  attributeNameList: z.array(z.string()).describe('The order of `attributes`.'),
  createsUnknownUsers: z.boolean().describe('Requests for people who do not exist make them.'),
  administrator: z.boolean().describe('The caller sees the console.'),
  operator: z.boolean().describe('The caller may change something there.'),
  canSearchPeople: z.boolean().describe('Whether the one who asks finds people by `search`.'),
})
export type MainConfig = Wire<typeof mainConfig>

export const attributeValues = z.object({
  name: z.string(),
  values: z.array(z.string()),
  dataType: z.literal('string'),
})
export type AttributeValues = Wire<typeof attributeValues>

/** GET user, and the answer to PUT user. */
export const userData = z.object({
  uid: z.string().optional(),
  dn: z.string(),
  attributes: z.array(attributeValues),
  groups: z.array(z.string()),
})
export type UserData = Wire<typeof userData>

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
export type Organization = Wire<typeof organization>

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
export type WorkflowListItem = Wire<typeof workflowListItem>

/** GET workflows/candelegate. */
export const delegationRights = z.object({
  canDelegate: z.boolean(),
  canPreApprove: z.boolean(),
  commentRequired: z.boolean().describe('A decision with the request needs a reason.'),
  uuid: z.string().optional(),
})
export type DelegationRights = Wire<typeof delegationRights>

/** By uuid: `success`, or an error text for people. */
export const submitResults = z.record(z.string(), z.string())
export type SubmitResults = Wire<typeof submitResults>

/** PUT workflows?outcomes=true, by uuid: the same, and the result of the decision that came with it. */
export const submitOutcome = z.object({
  result: z.string(),
  decision: z
    .enum(['taken', 'left', 'none'])
    .describe(
      "Only of a line with a decision that was submitted. `taken`: about everybody's first approval that there was; `left`: at least one was not the requester's to decide, or is still to come, and waits for others; `none`: there was nothing to decide.",
    )
    .optional(),
  alreadyOpen: z
    .literal(true)
    .describe('Nothing was started: the caller has open requests with the same workflow, users and parameters.')
    .optional(),
})
export type SubmitOutcome = Wire<typeof submitOutcome>

export const submitOutcomes = z.record(z.string(), submitOutcome)
export type SubmitOutcomes = Wire<typeof submitOutcomes>

/** GET urls and urls/org/{orgId}: a list of these. */
export const portalLink = z.object({
  name: z.string(),
  label: z.string(),
  org: z.string(),
  url: z.string(),
  icon: z.string().describe('A PNG in base64, or another picture as a data URI in base64; empty where there is none.'),
})
export type PortalLink = Wire<typeof portalLink>

/** GET search?q=&kind=workflow|url|person. `kind` may repeat; absent means all allowed kinds. */
export const searchResults = z.object({
  workflows: z.array(
    z.object({
      name: z.string(),
      label: z.string(),
      description: z.string(),
      org: z.string().describe('Empty for one of every org.'),
      dynamic: z.literal(true).describe('It has several rows, in the list of its org.').optional(),
    }),
  ),
  urls: z.array(portalLink),
  people: z.array(z.object({ uid: z.string(), displayName: z.string() })),
  more: z.boolean().describe('There are more than are shown.'),
})
export type SearchResults = Wire<typeof searchResults>

export const markedKind = z.enum(['url', 'workflow'])
export type MarkedKind = Wire<typeof markedKind>

export const markedItem = z.object({
  kind: markedKind,
  name: z.string(),
  label: z.string(),
  at: z.string(),
})
export type MarkedItem = Wire<typeof markedItem>

/** GET favorites. Only items that the caller may still see. */
export const markedItems = z.object({
  favorites: z.array(markedItem),
  recent: z.array(markedItem).describe('Latest first.'),
})
export type MarkedItems = Wire<typeof markedItems>

/** PUT user: values by attribute. Absent attributes keep their values; an empty text clears the attribute. */
export type ProfileChange = Readonly<Record<string, { readonly name?: string; readonly value: string }>>

/** POST recent: the caller has used this; answered with 204. */
export interface RecentUse {
  readonly kind: MarkedKind
  readonly name: string
}
