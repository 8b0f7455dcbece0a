/** How Gatehouse itself compares texts: letter case is folded unless it counts. */
export const foldValue = (value: string, caseExact: boolean): string => (caseExact ? value : value.toLowerCase())

/**
 * The same for a part of a text. Lower-case sigma has another form at the end of a word, where a part may end too,
 * so both forms count as one letter here.
 */
export const foldPart = (text: string, caseExact: boolean): string =>
  caseExact ? text : text.toLowerCase().replaceAll(finalSigma, sigma)

export const sigma = 'σ'
export const finalSigma = 'ς'

/** UTF-16 order differs from code-point order where one side is a surrogate and the other a late BMP character. */
export function compareCodePoints(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)
