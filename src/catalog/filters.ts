import { createRegistry } from '#kernel/registry.ts'
import account from '#modules/filters/account/account.ts'
import approvalLink from '#modules/filters/approval-link/approval-link.ts'
import callWorkflow from '#modules/filters/call-workflow/call-workflow.ts'
import checkSession from '#modules/filters/check-session/check-session.ts'
import developmentIssuer from '#modules/filters/development-issuer/development-issuer.ts'
import eventKeys from '#modules/filters/event-keys/event-keys.ts'
import eventPoll from '#modules/filters/event-poll/event-poll.ts'
import issuer from '#modules/filters/issuer/issuer.ts'
import main from '#modules/filters/main/main.ts'
import passwords from '#modules/filters/passwords/passwords.ts'
import plugin from '#modules/filters/plugin/plugin.ts'
import portal from '#modules/filters/portal/portal.ts'
import register from '#modules/filters/register/register.ts'
import scimGateway from '#modules/filters/scim-gateway/scim-gateway.ts'
import scimJournal from '#modules/filters/scim-journal/scim-journal.ts'
import stsDocuments from '#modules/filters/sts-documents/sts-documents.ts'
import stsInjector from '#modules/filters/sts-injector/sts-injector.ts'
import stsToken from '#modules/filters/sts-token/sts-token.ts'
import tokenApi from '#modules/filters/token-api/token-api.ts'
import workflowAdmin from '#modules/filters/workflow-admin/workflow-admin.ts'

/** To add a filter, add one import above and one line below. */
export const filters = createRegistry('filter', [
  account,
  approvalLink,
  callWorkflow,
  checkSession,
  developmentIssuer,
  eventKeys,
  eventPoll,
  issuer,
  main,
  passwords,
  plugin,
  portal,
  register,
  scimGateway,
  scimJournal,
  stsDocuments,
  stsInjector,
  stsToken,
  tokenApi,
  workflowAdmin,
])
