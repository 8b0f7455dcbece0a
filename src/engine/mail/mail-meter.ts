/** What became of an attempt to send a mail: handed over, to be tried again, or given up. */
export type MailOutcome = 'sent' | 'retried' | 'failed'

export interface MailMeter {
  counted(outcome: MailOutcome): void
}

export const noMailMeter: MailMeter = { counted() {} }
