const longest = 256

/** Control, format, private-use and unassigned characters, line separators, and those that are never drawn. */
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/**
 * Why a new user can't have the login, as the end of a sentence about it; undefined if they can. After RFC 8265
 * (UsernameCasePreserved), but nothing is mapped: a login that would change is refused, so that users see the login that
 * is compared. A user who has such a login already keeps it, and is found, changed and deleted by it.
 */
export function loginProblem(login: string): string | undefined {
  if (login.trim() === '') return 'must not be blank'
  if (login.length > longest) return `must have at most ${longest} characters`
  if (login.trim() !== login) return 'must not begin or end with a blank'
  if (unseen.test(login)) return 'must not have control, direction, invisible or unassigned characters'
  if (login.normalize('NFC') !== login) return 'must be in the Unicode form NFC'
  if (login.normalize('NFKC') !== login) {
    return 'must not have characters that look like others, such as full-width letters, ligatures or special blanks'
  }
  if (/^\p{M}/u.test(login)) return 'must not begin with an accent that has no letter'
  return login.includes('  ') ? 'must not have two blanks in a row' : undefined
}
