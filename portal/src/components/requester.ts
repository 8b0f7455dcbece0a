import { nobodysLogin } from '#contract/main.ts'
import type { Translation } from '../app/i18n.tsx'

/** Who asked for something, in words: whoever registers has no login yet. */
export const requesterText = (login: string, t: Translation['t']): string =>
  login.toLowerCase() === nobodysLogin ? t('people.registering') : login
