import { defineFilter } from '#sdk/filter/filter.ts'
import { withParameters } from '#sdk/module/parameters.ts'

const noCache = { 'cache-control': 'no-cache, no-store, must-revalidate', pragma: 'no-cache', expires: '0' }

/** Forbids browsers and proxies to keep the responses of the filters after it. */
export default defineFilter({
  className: 'filters.NoCache',
  aliases: ['com.tremolosecurity.proxy.filters.SetNoCacheHeaders'],
  ...withParameters({}),
  answers: false,
  create: () => ({
    async handle(_exchange, next) {
      const response = await next()
      return { ...response, headers: { ...response.headers, ...noCache } }
    },
  }),
})
