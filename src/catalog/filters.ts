import { createRegistry } from '#kernel/registry.ts'
import approvalLink from '#modules/filters/approval-link/approval-link.ts'
import callWorkflow from '#modules/filters/call-workflow/call-workflow.ts'
import developmentIssuer from '#modules/filters/development-issuer/development-issuer.ts'
import eventKeys from '#modules/filters/event-keys/event-keys.ts'
import eventPoll from '#modules/filters/event-poll/event-poll.ts'
import plugin from '#modules/filters/plugin/plugin.ts'
import scimGateway from '#modules/filters/scim-gateway/scim-gateway.ts'
import scimJournal from '#modules/filters/scim-journal/scim-journal.ts'
import stsDocuments from '#modules/filters/sts-documents/sts-documents.ts'
import stsInjector from '#modules/filters/sts-injector/sts-injector.ts'
import stsToken from '#modules/filters/sts-token/sts-token.ts'
import workflowAdmin from '#modules/filters/workflow-admin/workflow-admin.ts'

/** Add a filter: one import above, one line below. */
export const filters = createRegistry('filter', [
  approvalLink,
  callWorkflow,
  developmentIssuer,
  eventKeys,
  eventPoll,
  plugin,
  scimGateway,
  scimJournal,
  stsDocuments,
  stsInjector,
  stsToken,
  workflowAdmin,
])
