/** What became of an attempt to send a mail: handed over, to be tried again, given up, or nobody knows. */
export type MailOutcome = 'sent' | 'retried' | 'failed' | 'unknown'

export interface MailMeter {
  counted(outcome: MailOutcome): void
}

export const noMailMeter: MailMeter = { counted() {} }
