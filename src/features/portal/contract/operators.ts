import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'
import { formAttributeView } from '#sdk/contract/forms.ts'
import { attributeValues } from './main.ts'

const labelledAttribute = z.object({
  name: z.string(),
  label: z.string(),
  picked: z.boolean().describe('What the page sets when it searches by the attribute; false here'),
  value: z.string().describe('What the page searches for; empty here'),
})

/** GET ops/config. */
export const operatorsConfig = z.object({
  searchBases: z.array(z.string()).describe('The labels of the places that can be searched'),
  searchableAttributes: z.array(labelledAttribute),
  resultsAttributes: z.array(labelledAttribute),
  scaleJsMainUri: z.string(),
  homeUrl: z.string(),
  approveChecked: z.boolean(),
  showPreApprove: z.boolean(),
  approvedLabel: z.string(),
  deniedLabel: z.string(),
  reasonApprovedLabel: z.string(),
  reasonDeniedLabel: z.string(),
  maxWidth: z.string(),
  attributesWidth: z.int(),
  rolesWidth: z.int(),
})
export type OperatorsConfig = Wire<typeof operatorsConfig>

/** PUT ops/search: a list of these. */
export const foundUser = z.object({ dn: z.string() }).catchall(z.string().describe('A configured attribute'))
export type FoundUser = Wire<typeof foundUser>

/** GET ops/user?dn=. */
export const operatedUser = z.object({
  dn: z.string(),
  uid: z.string().optional(),
  attributes: z.array(attributeValues),
  groups: z.array(z.string()),
  metaData: z.record(z.string(), formAttributeView).describe('The fields of the profile, by name'),
  canEditUser: z.boolean(),
})
export type OperatedUser = Wire<typeof operatedUser>

/** POST ops/user: `waiting` if the workflow has to wait, such as for an approval. */
export const operatorUpdate = z.object({ status: z.enum(['unchanged', 'completed', 'waiting']) })
export type OperatorUpdate = Wire<typeof operatorUpdate>
