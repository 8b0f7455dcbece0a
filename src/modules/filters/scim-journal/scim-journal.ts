import { GatewayError } from '#kernel/errors.ts'
import { answerJournal } from '#modules/shared/runs/journal-answer.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Shows the request journals of SCIM gateways as JSON to users that its own chain and rules allow. */
export default defineFilter({
  className: 'filters.ScimJournal',
  ...withParameters({
    gateway: list({ about: 'The Applications whose journals are shown; all when absent.' }),
  }),
  answers: true,
  summarize: ({ gateway }) => gateway.map((value) => ({ label: 'journal', value })),
  create: ({ gateway: shown }, host) => ({
    async handle({ request, pathInfo }) {
      if (pathInfo !== '' && pathInfo !== '/') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
      return await answerJournal(request, shown, host)
    },
  }),
})
