/** Characters that change the direction of the text after them. */
const turning = /[\u202a-\u202e\u2066-\u2069]/g

/** The text in its written order, so that a name in it can't reverse what follows. */
export const inWrittenOrder = (text: string): string => text.replace(turning, '')

/** One line of at most that many characters, in its written order, without half a character at its end. */
export const oneLine = (text: string, longest: number): string =>
  inWrittenOrder(text)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, longest)
    .replace(/[\ud800-\udbff]$/, '')
