import type { RequestHead } from '#features/portal/contract/main-requests.ts'
import { useTranslation } from '../app/i18n.tsx'
import type { Fact } from './facts.tsx'
import { Preline } from './preline.tsx'

/** What a request is, wherever it is shown as a whole: to its requester, and to its approvers. */
export function useRequestFacts({ reason = '', accessEnds }: RequestHead, hasFailed = false): readonly Fact[] {
  const { t, dateTime, relative } = useTranslation()
  return [
    ...(reason === '' ? [] : [{ name: t('cart.reason'), value: <Preline text={reason} /> }]),
    ...(accessEnds === undefined
      ? []
      : [
          {
            name: t(hasFailed ? 'request.askedUntil' : 'request.accessEnds'),
            value: `${dateTime(accessEnds)} (${relative(accessEnds)})`,
          },
        ]),
  ]
}
