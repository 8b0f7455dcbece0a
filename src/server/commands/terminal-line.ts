import process from 'node:process'

/** Below this, a line says nothing any more. */
const leastWidth = 40
/** Where the output is no terminal: whoever searches it wants whole lines. */
const defaultWidth = 4_000

export const terminalWidth = (): number => process.stdout.columns ?? defaultWidth

/**
 * A text for people, no longer than the terminal. What clients sent must not move the cursor or change colours.
 */
export function terminalLine(text: string, width: number): string {
  const safe = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '\ufffd')
  const most = Math.max(width, leastWidth)
  return safe.length <= most ? safe : `${safe.slice(0, most - 1)}…`
}
