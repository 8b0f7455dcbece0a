import type { MessageKey } from '../../app/messages.ts'

const hour = 60 * 60_000

/** Times to look back at, each in as many parts as a picture has room for. */
export const periods = {
  '24h': { label: 'dashboard.day', millis: 24 * hour, parts: 24 },
  '7d': { label: 'dashboard.week', millis: 7 * 24 * hour, parts: 28 },
  '30d': { label: 'dashboard.month', millis: 30 * 24 * hour, parts: 30 },
} as const satisfies Readonly<
  Record<string, { readonly label: MessageKey; readonly millis: number; readonly parts: number }>
>

export type Period = keyof typeof periods

export const isPeriod = (word: string | undefined): word is Period => word !== undefined && Object.hasOwn(periods, word)
