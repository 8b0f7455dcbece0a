import type { Step } from '#engine/pipeline/passage.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { Filter } from '#sdk/filter.ts'
import type { GatewayResponse } from '#sdk/http.ts'

/** Filters run in the order of the YAML; a request that none of them answers is not found. */
export const runFilterChain: Step = (passage) => {
  const { request, url, subject } = passage
  if (url === undefined || subject === undefined)
    throw new Error('the filter chain needs a matched, authorized request')
  const exchange: Exchange = {
    request,
    application: url.application.name,
    mount: url.mount,
    pathInfo: request.path.slice(url.mount.length),
    subject,
  }
  return runFrom(0, url.url.filters, exchange)
}

async function runFrom(index: number, filters: readonly Filter[], exchange: Exchange): Promise<GatewayResponse> {
  const filter = filters[index]
  if (filter === undefined) throw new GatewayError('NOT_FOUND', 'no filter answered the request')
  return filter.handle(exchange, () => runFrom(index + 1, filters, exchange))
}
