import { anonymousLogin } from '#sdk/contract/anonymous-login.ts'
import { type Translation, useTranslation } from '../app/i18n.tsx'
import { isolated } from '../app/isolated.ts'
import { type NameOf, useNames } from './person-names.tsx'

interface RequesterProps {
  readonly requestor: string
  readonly caller?: string
}

/** A visitor who registered without signing in: no one can answer or read anything in the portal. */
export const isVisitor = (login: string): boolean => login.toLowerCase() === anonymousLogin

/** The requester as text, with the user who submitted the request if that is another one. New users have no login yet. */
export function requesterText(
  { requestor: login, caller }: RequesterProps,
  t: Translation['t'],
  nameOf: NameOf,
): string {
  const requestor = isVisitor(login) ? t('people.registering') : nameOf(login)
  return caller === undefined ? requestor : t('people.submittedBy', { requestor, caller: nameOf(caller) })
}

/** The same in a cell of a table. */
export function Requester(props: RequesterProps) {
  const { t } = useTranslation()
  return isolated(requesterText(props, t, useNames()))
}
