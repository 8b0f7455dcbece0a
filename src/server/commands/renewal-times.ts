import { defaultRenewalTimes, type RenewalTimes } from '#engine/session/session-renewal.ts'
import { wholeNumber } from '#server/commands/whole-number.ts'

const usual = { every: defaultRenewalTimes.everyMillis / 1000, grace: defaultRenewalTimes.graceMillis / 1000 }

export const renewalTimeUsage = `  --person-check-seconds N    how old what the directory said of somebody logged in may be (${usual.every})
  --person-grace-seconds N    how long it is believed while the directory does not answer (${usual.grace})`

export const renewalTimeOptions = {
  'person-check-seconds': { type: 'string' },
  'person-grace-seconds': { type: 'string' },
} as const

type Values = { readonly [name in keyof typeof renewalTimeOptions]?: string | undefined }

/** Throws an Error that says what is wrong. */
export function readRenewalTimes(values: Values): RenewalTimes {
  const read = (name: keyof Values, max: number, fallback: number): number => {
    const text = values[name]
    if (text === undefined) return fallback
    const number = wholeNumber(text, 1, max)
    if (number === undefined) throw new Error(`--${name} must be a whole number from 1 to ${max}`)
    return number
  }
  return {
    everyMillis: 1000 * read('person-check-seconds', 3600, usual.every),
    graceMillis: 1000 * read('person-grace-seconds', 43_200, usual.grace),
  }
}
