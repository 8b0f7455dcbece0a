import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** Secret values are left out. */
export const previewAttribute = z.object({
  name: z.string(),
  secret: z.boolean(),
  before: z.array(z.string()),
  after: z.array(z.string()),
})
export type PreviewAttribute = Wire<typeof previewAttribute>

/** A user or a group that is created, changed or deleted at a target. */
export const previewEntry = z.object({
  kind: z.enum(['user', 'group']),
  action: z.enum(['create', 'change', 'delete']),
  target: z.string(),
  name: z.string(),
  newName: z.string().describe('Where it is to have another name.').optional(),
  attributes: z.array(previewAttribute),
  joins: z.array(z.string()).describe('Groups of a user.'),
  leaves: z.array(z.string()),
  cut: z.boolean().describe('There is more than is listed here.'),
})
export type PreviewEntry = Wire<typeof previewEntry>

export const previewStep = z.union([
  previewEntry,
  z.object({
    kind: z.literal('end'),
    target: z.string(),
    of: z.enum(['user', 'group']),
    name: z.string(),
    expires: z.string(),
  }),
  z.object({
    kind: z.literal('object'),
    action: z.enum(['create', 'change', 'delete']),
    target: z.string(),
    name: z.string().describe('The path of the Kubernetes object in the API.'),
    objectKind: z.string().describe('Such as RoleBinding, where it is known.').optional(),
  }),
  z.object({ kind: z.literal('mail'), recipient: z.string(), subject: z.string() }),
  z.object({ kind: z.literal('approval'), label: z.string() }),
  z.object({ kind: z.literal('wait'), until: z.string() }),
  z.object({ kind: z.literal('workflow'), name: z.string(), apart: z.boolean() }),
  z.object({ kind: z.literal('unforeseen'), task: z.string(), reason: z.string().optional() }),
])
export type PreviewStep = Wire<typeof previewStep>

/**
 * What approving would do, in order, as far as the preview can show it. Steps after one of the kind `unforeseen`
 * may differ, and steps after an `approval` happen only if that approval is given too. Has no secrets. Times are
 * ISO 8601.
 */
export const changePreview = z.object({
  steps: z.array(previewStep),
  whole: z.boolean().describe('False if more steps follow than are listed.'),
})
export type ChangePreview = Wire<typeof changePreview>
