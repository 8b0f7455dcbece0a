import type { PortalLink } from '#contract/main.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { PortalUrl } from '#sdk/portal.ts'
import { answer, notFound } from './answer.ts'
import type { MainParts } from './main-parts.ts'

export const toLink = ({ name, label, org, url, icon }: PortalUrl): PortalLink => ({
  name,
  label,
  org: org ?? '',
  url,
  icon: icon ?? '',
})

export const listLinks =
  ({ visibility }: MainParts) =>
  async ({ subject }: Exchange): Promise<GatewayResponse> =>
    answer((await visibility.urls(subject)).map(toLink))

/** Links of the org, and those of every org. An org that the caller does not see is not there. */
export const listLinksOf =
  ({ visibility }: MainParts) =>
  async ({ subject }: Exchange, org = ''): Promise<GatewayResponse> => {
    if (!(await visibility.orgIds(subject)).has(org)) throw notFound(`no org "${org}" for "${subject.uid}"`)
    const urls = await visibility.urls(subject)
    return answer(urls.filter((url) => url.org === undefined || url.org === org).map(toLink))
  }
