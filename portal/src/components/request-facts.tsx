import type { RequestHead, RequestSummary } from '#features/portal/contract/main-requests.ts'
import { useTranslation } from '../app/i18n.tsx'
import { accessText } from './access-now.ts'
import type { Fact } from './facts.tsx'
import { Preline } from './preline.tsx'

/** What a request is, wherever it is shown as a whole: to its requester, and to its approvers. */
export function useRequestFacts(request: RequestHead & Pick<RequestSummary, 'access'>): readonly Fact[] {
  const { t, dateTime, relative } = useTranslation()
  const { reason = '', accessEnds } = request
  const timeText = (at: string): string => `${dateTime(at)} (${relative(at)})`
  const access = accessText(request, t, timeText)
  return [
    ...(reason === '' ? [] : [{ name: t('cart.reason'), value: <Preline text={reason} /> }]),
    ...(accessEnds === undefined ? [] : [{ name: t('request.askedUntil'), value: timeText(accessEnds) }]),
    ...(access === undefined ? [] : [{ name: t('request.accessNow'), value: access }]),
  ]
}
