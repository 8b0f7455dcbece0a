import * as z from 'zod'
import type { Wire } from './wire.ts'

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

export const notification = z.discriminatedUnion('kind', [
  approvalNotification,
  requestNotification,
  accessNotification,
])
export type Notification = Wire<typeof notification>

/** GET notifications?limit=, and the answer to PUT notifications/read. */
export const notificationList = z.object({
  notifications: z.array(notification).describe('Latest first.'),
  unread: z.int().describe('Of all that there are, also of those beyond `limit`.'),
})
export type NotificationList = Wire<typeof notificationList>

/** PUT notifications/read. */
export interface ReadNotifications {
  /** Others than the current ones are ignored. */
  readonly ids: readonly string[]
}
