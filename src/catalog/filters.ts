import { createRegistry } from '#kernel/registry.ts'
import approvalLink from '#modules/filters/approval-link/approval-link.ts'
import callWorkflow from '#modules/filters/call-workflow/call-workflow.ts'
import developmentIssuer from '#modules/filters/development-issuer/development-issuer.ts'
import eventKeys from '#modules/filters/event-keys/event-keys.ts'
import eventPoll from '#modules/filters/event-poll/event-poll.ts'
import scimGateway from '#modules/filters/scim-gateway/scim-gateway.ts'
import scimJournal from '#modules/filters/scim-journal/scim-journal.ts'
import workflowAdmin from '#modules/filters/workflow-admin/workflow-admin.ts'

/** Add a filter: one import above, one line below. */
export const filters = createRegistry('filter', [
  approvalLink,
  callWorkflow,
  developmentIssuer,
  eventKeys,
  eventPoll,
  scimGateway,
  scimJournal,
  workflowAdmin,
])
