import * as z from 'zod'

/** Values are left out where they are secret. */
export const previewAttribute = z.object({
  name: z.string(),
  secret: z.boolean(),
  before: z.array(z.string()),
  after: z.array(z.string()),
})

/** A user or a group that comes, changes or goes at a target. */
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
    kind: z.literal('mail'),
    recipient: z.string(),
    subject: z.string(),
  }),
  z.object({
    kind: z.literal('approval'),
    label: z.string(),
  }),
  z.object({
    kind: z.literal('wait'),
    until: z.string(),
  }),
  z.object({
    kind: z.literal('workflow'),
    name: z.string(),
    apart: z.boolean(),
  }),
  z.object({
    kind: z.literal('unforeseen'),
    task: z.string(),
    reason: z.string().optional(),
  }),
])

/** What approving would do, in order, as far as the preview can say. Steps after one of the kind `unforeseen` may differ, and steps after an `approval` happen only if it is given too. Has no secrets. Times are ISO 8601 on the wire. */
export const changePreview = z.object({
  steps: z.array(previewStep),
  whole: z.boolean().describe('False if more steps follow than are listed.'),
})
