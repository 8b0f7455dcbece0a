import type { PasswordProblem } from '#protocols/passwords/password-rules.ts'
import type { TextKey, Texts } from '#sdk/page/page-texts.ts'

const keys: Readonly<Record<PasswordProblem['kind'], TextKey>> = {
  missing: 'password.missing',
  different: 'password.different',
  short: 'password.short',
  long: 'password.long',
  characters: 'password.characters',
  values: 'password.values',
  unchecked: 'password.unchecked',
  breached: 'password.breached',
}

/** Why a password is not accepted, for the user; without a full stop. */
export const passwordProblemText = ({ kind, characters }: PasswordProblem, texts: Texts): string =>
  texts(keys[kind], characters === undefined ? {} : { count: String(characters) })
