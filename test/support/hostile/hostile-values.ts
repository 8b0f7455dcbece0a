/** Pieces that break code that concatenates strings, or folds, sorts or truncates letters. */
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
  '~',
  '^',
  ':',
  '/',
  '..',
  '.',
  '%2e%2e',
  '%00',
  '\\2a',
  '\\00',
  '[',
  ']',
  '{',
  '}',
  '\0',
  '\ud800',
  '\u2028',
  '\u202e',
  '*)(|(objectClass=*',
  ',dc=example,dc=test',
  '+cn=x',
  '" or userName pr or title eq "',
  'members[value eq "',
  '"}',
  '{userID}',
  '$.items',
  '../teams',
  '?limit=0',
  '%s',
  'constructor',
  'undefined',
  '<a href="#">&amp;</a>',
] as const

/** One in this many is long. */
const longEvery = 250
const longest = 65_536

/**
 * The same values for the same seed. All differ, and none is a part of another, even if letter case, spaces and accents
 * are ignored, since each contains its number. Some have 64 KiB.
 */
export function hostileValues(count: number, seed = 1): string[] {
  let state = seed
  const next = (below: number): number => {
    // A linear congruential generator (Numerical Recipes); good enough to mix pieces.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const some = (most: number): string =>
    Array.from({ length: 1 + next(most) }, () => pieces[next(pieces.length)] ?? '').join('')
  return Array.from({ length: count }, (_, i) => {
    const number = mark('n', i)
    if (i % longEvery === longEvery - 1) {
      const text = some(8).toWellFormed().replaceAll('\0', '')
      return (number + text.repeat(longest)).slice(0, longest / 4).toWellFormed()
    }
    return [`${number}${some(8)}`, `${some(8)}${number}`, `${some(4)}${number}${some(4)}`][i % 3] ?? ''
  })
}

/** A different value for each, as hostile as the original. */
export const other = (value: string): string =>
  value.replace(/([m-n])(\d{6})\1/, (_, letter, number) => mark(letter === 'n' ? 'm' : 'n', number))

/** A harmless text with the value's number. */
export const harmless = (value: string): string => /([mn])\d{6}\1/.exec(value)?.[0] ?? 'none'

const mark = (letter: string, number: number | string): string => `${letter}${String(number).padStart(6, '0')}${letter}`
