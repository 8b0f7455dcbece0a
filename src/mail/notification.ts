/** What users are notified of: their inbox has all of it. An answer counts as a question. */
export const notificationKinds = ['approval', 'request', 'question', 'access'] as const
export type NotificationKind = (typeof notificationKinds)[number]

/** Whether and when a user is also mailed: as it happens, in the next digest, or not at all. */
export const mailTimes = ['now', 'digest', 'never'] as const
export type MailTime = (typeof mailTimes)[number]

/** What a user chose, and from when on it applies. */
export interface MailChoice {
  readonly mail: MailTime
  readonly since: Date
  /** What applied until then. */
  readonly before: MailTime
}

/** A kind without a choice has the usual mails. */
export interface NotificationSettings {
  readonly choices: Readonly<Partial<Record<NotificationKind, MailChoice>>>
  /** The language of mails. */
  readonly language?: string
}

/** What a user chooses to be mailed about; kinds that are absent stay as they are. */
export interface NotificationChoices {
  readonly choices: Readonly<Partial<Record<NotificationKind, MailTime>>>
  readonly language?: string
}

/** For users who chose nothing. */
export const usualMail: Readonly<Record<NotificationKind, MailTime>> = {
  approval: 'now',
  request: 'now',
  question: 'now',
  access: 'never',
}

interface Circumstances {
  /** Whether digests are sent. Without them, a user who chose one gets the usual mails. */
  readonly hasDigest: boolean
  /** When it happened; now if absent. What happened before a change is reported once, as was chosen then. */
  readonly at?: Date | undefined
}

/** When a user with these settings is mailed about something. */
export function mailTime(
  settings: NotificationSettings | undefined,
  kind: NotificationKind,
  { hasDigest, at }: Circumstances,
): MailTime {
  const choice = settings?.choices[kind]
  if (choice === undefined) return usualMail[kind]
  const mail = at !== undefined && at < choice.since ? choice.before : choice.mail
  return mail === 'digest' && !hasDigest ? usualMail[kind] : mail
}
