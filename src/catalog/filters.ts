import { createRegistry } from '#kernel/registry.ts'
import developmentIssuer from '#modules/filters/development-issuer/development-issuer.ts'
import eventKeys from '#modules/filters/event-keys/event-keys.ts'
import eventPoll from '#modules/filters/event-poll/event-poll.ts'
import scimGateway from '#modules/filters/scim-gateway/scim-gateway.ts'
import scimJournal from '#modules/filters/scim-journal/scim-journal.ts'

/** Add a filter: one import above, one line below. */
export const filters = createRegistry('filter', [developmentIssuer, eventKeys, eventPoll, scimGateway, scimJournal])
