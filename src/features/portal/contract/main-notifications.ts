import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

const common = {
  id: z.string().describe('Another one when the same thing happens again.'),
  at: z.string(),
  read: z.boolean(),
}

/** An open approval that the caller may decide. */
export const approvalNotification = z.object({
  ...common,
  kind: z.literal('approval'),
  approval: z.string(),
  label: z.string(),
  displayName: z.string().describe('The user whom it is about.'),
})

/** The outcome of a request of the caller; an `incident` is on hold and may still succeed. */
export const requestNotification = z.object({
  ...common,
  kind: z.literal('request'),
  request: z.string(),
  label: z.string(),
  state: z.enum(['completed', 'denied', 'expired', 'failed', 'cancelled', 'incident']),
})

/** Access of the caller that expires soon. */
export const accessNotification = z.object({
  ...common,
  kind: z.literal('access'),
  target: z.string(),
  name: z.string(),
  expires: z.string(),
})

/** A question of an approver about a request of the caller, that waits for an answer. */
export const questionNotification = z.object({
  ...common,
  kind: z.literal('question'),
  request: z.string(),
  label: z.string(),
  displayName: z.string().describe('The user who asks.'),
})

/** The answer to a question of the caller about an approval that is still open. */
export const answerNotification = z.object({
  ...common,
  kind: z.literal('answer'),
  approval: z.string(),
  label: z.string(),
  displayName: z.string().describe('The user who answered.'),
})

export const notification = z.discriminatedUnion('kind', [
  approvalNotification,
  requestNotification,
  accessNotification,
  questionNotification,
  answerNotification,
])
export type Notification = Wire<typeof notification>

/** GET notifications?limit=, and the answer to PUT notifications/read. */
export const notificationList = z.object({
  notifications: z.array(notification).describe('Latest first.'),
  unread: z.int().describe('Of all that there are, also of those beyond `limit`.'),
})
export type NotificationList = Wire<typeof notificationList>

const kind = z.enum(['approval', 'request', 'question', 'access'])
const mailTime = z.enum(['now', 'digest', 'never'])

/** GET notifications/settings, and the answer to PUT. */
export const notificationSettings = z.object({
  sendsMail: z.boolean().describe('False if no mail server is configured: then there is only the inbox.'),
  mails: z
    .array(z.object({ kind, mail: mailTime, choices: z.array(mailTime).describe('What can be chosen.') }))
    .describe('When the caller is mailed about each kind. An answer counts as a question.'),
  language: z.string().describe('The language of digests; absent if the caller chose none.').optional(),
})
export type NotificationSettingsView = Wire<typeof notificationSettings>

/** PUT notifications/settings. */
export interface ChosenNotifications {
  /** By kind; kinds that are absent stay as they are. */
  readonly mails: Partial<Record<z.infer<typeof kind>, z.infer<typeof mailTime>>>
  readonly language?: string
}

/** PUT notifications/read. */
export interface ReadNotifications {
  /** Others than the current ones are ignored. */
  readonly ids: readonly string[]
}
