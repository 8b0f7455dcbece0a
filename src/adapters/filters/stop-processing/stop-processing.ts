import { defineFilter } from '#sdk/filter/filter.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Answers with an empty 200, for a URL whose work its chain, rules, results or earlier filters have done. */
export default defineFilter({
  className: 'filters.StopProcessing',
  aliases: ['com.tremolosecurity.prelude.filters.StopProcessing'],
  ...withParameters({}),
  answers: true,
  create: () => ({
    async handle() {
      return { status: 200, headers: { 'cache-control': 'no-store' } }
    },
  }),
})
