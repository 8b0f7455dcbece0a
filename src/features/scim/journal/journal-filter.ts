import { scimJournalPage } from '#features/scim/contract/journal.ts'
import { placeAtSegment } from '#sdk/api/api-description.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'
import { answerJournal, type JournalHost, journalFilters, type ShownJournals } from './journal-answer.ts'

/** Shows the request journals of SCIM gateways as JSON to users that its own chain and rules allow. */
export default defineFilter({
  className: 'filters.ScimJournal',
  ...withParameters({
    gateway: list({ about: 'The Applications whose journals are shown; all when absent.' }),
  }),
  answers: true,
  summarize: ({ gateway }) => gateway.map((value) => ({ label: 'journal', value })),
  api: () => scimJournalApi.served(placeAtSegment),
  create: ({ gateway: shown }, { journals, clock }: JournalHost) => scimJournalApi.filter({ shown, journals, clock }),
})

export const scimJournalApi = new ServedApi<ShownJournals>({
  title: 'SCIM journal API',
  version: '1.0.0',
  answers: { ScimJournalPage: scimJournalPage, Errors: mainErrors },
  bodies: {},
  failure: { description: 'What is wrong', schema: 'Errors' },
  operations: {
    getScimJournal: {
      route: 'GET',
      summary: 'Calls of SCIM clients',
      query: { ...journalFilters, after: 'The `next` of the page before', limit: 'How many at most' },
      answer: 'ScimJournalPage',
      handle: answerJournal,
    },
  },
})
