import { GatewayError } from '#kernel/errors.ts'
import { problemErrors } from '#modules/shared/http/json-answer.ts'
import { answerRoute } from '#modules/shared/http/routes.ts'
import { runRoutes } from '#modules/shared/runs/run-administration.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { flag } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Shows the runs of this installation to administrators, and lets them resolve incidents. */
export default defineFilter({
  className: 'filters.WorkflowAdmin',
  ...withParameters({
    readOnly: flag({ about: '`"true"`: runs are shown, but cannot be retried, skipped or cancelled.' }),
  }),
  answers: true,
  errors: problemErrors,
  create: ({ readOnly }, host) => {
    const routes = runRoutes<{ readonly host: FilterHost }>('', (_, { subject }) => {
      if (readOnly)
        throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" requested a change, but this is read-only`)
    })
    return { handle: (exchange) => answerRoute(routes, { host }, exchange, exchange.pathInfo) }
  },
})
