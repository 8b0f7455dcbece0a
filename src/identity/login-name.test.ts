import fc from 'fast-check'
import { expect, test } from 'vitest'
import { loginProblem } from '#identity/login-name.ts'

const blankEnds = 'must not begin or end with a blank'
const unseen = 'must not have control, direction, invisible or unassigned characters'
const lookAlike =
  'must not have characters that look like others, such as full-width letters, ligatures or special blanks'

test.each([
  ['nothing', '', 'must not be blank'],
  ['blanks', ' \u3000', 'must not be blank'],
  ['a blank at the end', 'ada ', blankEnds],
  ['a blank at the start', ' ada', blankEnds],
  ['a no-break space at the end', 'ada\u00a0', blankEnds],
  ['a line break at the end', 'ada\r\n', blankEnds],
  ['a line break', 'ada\r\nroot', unseen],
  ['NUL', 'ada\0', unseen],
  ['an escape sequence', 'ada\u001b[2J', unseen],
  ['a C1 control', 'ada\u0085x', unseen],
  ['a right-to-left override', 'ada\u202enimda', unseen],
  ['an isolate', '\u2066ada\u2069', unseen],
  ['a zero-width space', 'a\u200bda', unseen],
  ['a zero-width joiner', 'a\u200dda', unseen],
  ['a soft hyphen', 'a\u00adda', unseen],
  ['a byte order mark', 'a\ufeffda', unseen],
  ['a Hangul filler', 'ada\u115fx', unseen],
  ['a variation selector', 'ada\ufe0f', unseen],
  ['a tag', 'ada\u{e0041}', unseen],
  ['a line separator', 'a\u2028da', unseen],
  ['private use', 'ada\ue000', unseen],
  ['an unassigned character', 'ada\u{1fffe}', unseen],
  ['half a surrogate pair', 'ada\ud800', unseen],
  ['a decomposed accent', 'Jose\u0301', 'must be in the Unicode form NFC'],
  ['the Kelvin sign', '\u212aelvin', 'must be in the Unicode form NFC'],
  ['full-width letters', 'ａｄａ', lookAlike],
  ['a ligature', 'ﬁona', lookAlike],
  ['mathematical letters', '𝐚𝐝𝐚', lookAlike],
  ['a circled letter', 'ⓐda', lookAlike],
  ['a no-break space inside', 'ada\u00a0l', lookAlike],
  ['an ideographic space inside', 'ada\u3000l', lookAlike],
  ['an accent alone', '\u0301ada', 'must not begin with an accent that has no letter'],
  ['two blanks', 'ada  l', 'must not have two blanks in a row'],
  ['too many characters', 'a'.repeat(257), 'must have at most 256 characters'],
])('a new login with %s is refused', (_, login, problem) => expect(loginProblem(login)).toBe(problem))

test.each([
  'ada',
  'Ada Lovelace',
  'ada@corp.test',
  'CORP\\ada',
  "o'brien+x",
  'josé',
  'Jürgen Groß',
  'анна',
  '山田',
  'محمد',
  'अनुपमा',
  '한글',
  'ada*(|)"<>;,=#',
  'a'.repeat(256),
])('a user can have the login %j', (login) => expect(loginProblem(login)).toBeUndefined())

test('two accepted logins that look the same are the same', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 12 }), (text) => {
      if (loginProblem(text) === undefined) expect(text.normalize('NFKC').trim().replace(/\s+/g, ' ')).toBe(text)
    }),
  )
})
