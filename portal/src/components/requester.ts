import { anonymousLogin } from '#contract/constants.ts'
import type { Translation } from '../app/i18n.tsx'

/** The requester as text, with the user who submitted the request if that is another one. New users have no login yet. */
export function requesterText(login: string, t: Translation['t'], caller?: string): string {
  const requestor = login.toLowerCase() === anonymousLogin ? t('people.registering') : login
  return caller === undefined ? requestor : t('people.submittedBy', { requestor, caller })
}
