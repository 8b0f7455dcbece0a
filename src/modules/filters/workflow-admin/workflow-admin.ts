import { problemErrors } from '#modules/shared/http/json-answer.ts'
import { RunAdministration } from '#modules/shared/runs/run-administration.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { flag } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  readOnly: flag({ about: '`"true"`: runs are shown, but cannot be retried, skipped or cancelled.' }),
}

/** Shows the runs of this installation to administrators, and lets them resolve incidents. */
export default defineFilter({
  className: 'filters.WorkflowAdmin',
  parameters,
  answers: true,
  errors: problemErrors,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  create: ({ readOnly }, host) => {
    const administration = new RunAdministration(readOnly, host)
    return { handle: (exchange) => administration.answer(exchange, exchange.pathInfo) }
  },
})
