import { GatewayError } from '#kernel/errors.ts'
import { jsonBody } from '#kernel/json.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { clustersOf } from '#sdk/target/kubernetes-cluster.ts'

/** Answers OpenUnison's form for new namespaces, which asks whether objects of a cluster are written to Git. */
export default defineFilter({
  className: 'filters.ClusterMetadata',
  aliases: ['com.tremolosecurity.proxy.filters.CheckK8sTargetMetadata'],
  ...withParameters({}),
  answers: true,
  create: (_, { targets }) => ({
    async handle({ request, pathInfo }) {
      allowMethods(request.method, 'GET', 'HEAD')
      const cluster = pathInfo.slice(pathInfo.lastIndexOf('/') + 1)
      if (!clustersOf(targets).some(({ name }) => name === cluster)) {
        throw new GatewayError('NOT_FOUND', `no cluster is named "${cluster}"`)
      }
      const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
      return { status: 200, headers, body: jsonBody({ isGit: false }) }
    },
  }),
})
