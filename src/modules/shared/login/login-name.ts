import { nobodysLogin } from '#contract/main.ts'

const maxLength = 256

/** By which callers go who did not log in: whoever has it would be taken for the one who asked for all they ask for. */
export const isNobodysName = (login: string): boolean => login.toLowerCase() === nobodysLogin

/** Shown as it is compared: nothing that is not seen, no space at its ends. */
export const isPlainText = (text: string): boolean => text.trim() === text && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)

/** Whether somebody new may have the login. */
export const isLoginName = (login: string): boolean =>
  login !== '' &&
  login.length <= maxLength &&
  isPlainText(login) &&
  login.normalize('NFKC') === login &&
  !isNobodysName(login)
