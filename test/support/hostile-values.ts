/** Pieces that break whatever is made by joining strings, or folds, sorts or cuts letters. */
const pieces = [
  `'`,
  `''`,
  '"',
  '`',
  '\\',
  '\\\\',
  ';',
  '--',
  '/*',
  '*/',
  '*',
  '(',
  ')',
  '&',
  '|',
  '!',
  ',',
  '+',
  '<',
  '>',
  '=',
  '#',
  '%',
  '_',
  ' ',
  '  ',
  '\t',
  '\n',
  '\r\n',
  '\u0001',
  '\u007f',
  '\u00a0',
  '\u200b',
  '\ufeff',
  '$1',
  '?',
  ':userID',
  '::text',
  '${x}',
  '$key$',
  '#[NAME]',
  '{{x}}',
  "' or 1=1 --",
  '*)(uid=*',
  "'; drop table x; --",
  '__proto__',
  'null',
  'NULL',
  '0',
  '1e9',
  '007',
  'k',
  'K',
  '\u212a',
  '\u0130',
  'i\u0307',
  'ß',
  'ẞ',
  'Σ',
  'ς',
  'é',
  'e\u0301',
  'Å',
  '日本',
  '🎉',
  '👩‍👩‍👧',
  '\u{10ffff}',
  '\ud7ff',
  '\ue000',
  'a',
  'Z',
  'admin',
] as const

/** The same values for the same seed. Some have spaces around them, and one in a hundred has 64 KB. */
export function hostileValues(count: number, seed = 1): string[] {
  let state = seed
  const next = (below: number): number => {
    // A linear congruential generator (Numerical Recipes); good enough to mix pieces.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  return Array.from({ length: count }, () => {
    const value = Array.from({ length: 1 + next(8) }, () => pieces[next(pieces.length)]).join('')
    return next(100) === 0
      ? value
          .repeat(Math.ceil(65_536 / value.length))
          .slice(0, 65_536)
          .toWellFormed()
      : value
  })
}
