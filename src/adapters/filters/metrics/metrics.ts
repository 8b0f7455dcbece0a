import { allowMethods } from '#sdk/api/routes.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { header } from '#sdk/http/http.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  localMetricsClassName: text({ about: 'Accepted and ignored: a Java class cannot be loaded. `check` says so.' }),
}

const mostNames = 100

/** Answers with the metrics of the gateway, for scrapers that log in to the URL. */
export default defineFilter({
  className: 'filters.Metrics',
  aliases: ['com.tremolosecurity.prometheus.filter.MetricsFilter'],
  parameters,
  answers: true,
  parse: (params, issues, context) => {
    const { localMetricsClassName } = readParameters(parameters, params, issues, context)
    if (localMetricsClassName !== undefined) {
      const message = '"localMetricsClassName" is ignored: a Java class cannot be loaded'
      issues.warning(params.pathOf('localMetricsClassName'), message)
    }
  },
  create: (_, { metrics }) => ({
    async handle({ request }) {
      allowMethods(request.method, 'GET', 'HEAD')
      if (metrics === undefined) throw new Error('this process has no metrics')
      const names = request.query.getAll('name[]').slice(0, mostNames)
      const { contentType, body } = await metrics.write({ accept: header(request, 'accept'), names })
      const headers = { 'content-type': contentType, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
      return request.method === 'HEAD' ? { status: 200, headers } : { status: 200, headers, body }
    },
  }),
})
