import { compareCodePoints, foldValue } from '#kernel/text/compare-texts.ts'

/**
 * Negative, zero or positive. Whole numbers of at most 18 digits compare as numbers, everything else by the code points
 * of the folded text, as databases with a binary collation do.
 */
export function compareValues(a: string, b: string, caseExact: boolean): number {
  if (isWholeNumber(a) && isWholeNumber(b)) {
    const difference = BigInt(a) - BigInt(b)
    return difference < 0n ? -1 : difference > 0n ? 1 : 0
  }
  return compareCodePoints(foldValue(a, caseExact), foldValue(b, caseExact))
}

const isWholeNumber = (text: string): boolean => /^-?\d{1,18}$/.test(text)
