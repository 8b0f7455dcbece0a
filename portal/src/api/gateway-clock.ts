/** The gateway's clock, from its answers: expiry follows its time, and a browser's own clock may be hours off. */

/** Headers have whole seconds, and a few more don't matter. */
const tolerance = 5_000

/** How far the gateway is ahead of the browser: 0 as long as they agree. `sent` and `received` are the browser's times. */
export function aheadBy(date: string | null, sent: number, received: number): number | undefined {
  const sentAt = Date.parse(date ?? '')
  if (Number.isNaN(sentAt)) return undefined
  const ahead = Math.round(sentAt + 500 - (sent + received) / 2)
  return Math.abs(ahead) <= tolerance + (received - sent) / 2 ? 0 : ahead
}

let ahead = 0

export function noteDate(date: string | null, sent: number): void {
  ahead = aheadBy(date, sent, Date.now()) ?? ahead
}

export const gatewayNow = (): number => Date.now() + ahead
