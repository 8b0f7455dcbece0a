import * as z from 'zod'
import { linkSchema, unlinkSchema } from '#features/portal/console/account-links.ts'
import { reassignSchema } from '#features/portal/console/approvals.ts'
import { explainSchema } from '#features/portal/console/configuration.ts'
import { consoleOperations } from '#features/portal/console/console.ts'
import { endSessionsSchema, personChangeSchema } from '#features/portal/console/person-changes.ts'
import { planChangeSchema, planRequestSchema } from '#features/portal/console/plan-changes.ts'
import { newTokenSchema, tokenChangeSchema } from '#features/portal/console/scim.ts'
import { newTenantSchema, tenantChangeSchema } from '#features/portal/console/scim-tenants.ts'
import * as consoleApprovals from '#features/portal/contract/console-approvals.ts'
import * as audit from '#features/portal/contract/console-audit.ts'
import * as configuration from '#features/portal/contract/console-configuration.ts'
import * as people from '#features/portal/contract/console-people.ts'
import * as consoleReconciliations from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { system } from '#features/portal/contract/console-system.ts'
import * as consoleTargets from '#features/portal/contract/console-targets.ts'
import * as tokens from '#features/portal/contract/console-tokens.ts'
import * as consoleWorkflows from '#features/portal/contract/console-workflows.ts'
import * as main from '#features/portal/contract/main.ts'
import * as access from '#features/portal/contract/main-access.ts'
import * as admin from '#features/portal/contract/main-admin.ts'
import * as apis from '#features/portal/contract/main-apis.ts'
import * as catalog from '#features/portal/contract/main-catalog.ts'
import * as notifications from '#features/portal/contract/main-notifications.ts'
import * as requests from '#features/portal/contract/main-requests.ts'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { interventions } from '#features/portal/runs/run-administration.ts'
import * as reports from '#features/reports/contract/reports.ts'
import * as scimJournal from '#features/scim/contract/journal.ts'
import { routed, ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { formAttributeView, listItem } from '#sdk/contract/forms.ts'
import * as preview from '#sdk/contract/preview.ts'
import { accessOperations } from './access.ts'
import { apiOperations } from './apis.ts'
import {
  approvalOperations,
  bulkSchema,
  delegationSchema,
  handoverSchema,
  messageSchema,
  voteSchema,
} from './approvals.ts'
import { catalogOperations } from './catalog.ts'
import { eventOperations, type MainApiParts } from './change-streams.ts'
import { frontPageOperations, useSchema } from './front-page.ts'
import { settingOperations, settingsSchema } from './notification-settings.ts'
import { notificationOperations, readSchema } from './notifications.ts'
import { changesSchema, profileOperations } from './profile.ts'
import { reportOperations } from './reports.ts'
import { cancelSchema, requestOperations } from './requests.ts'
import { cartSchema, submitOperations } from './submit.ts'

/** The schemas of a file by definition name: `userData` is `UserData`. */
const named = (schemas: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodType> =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [`${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, schema]),
  )

const { shownReport, ...reportAnswers } = reports

/** The groups of operations, by the first segment of their paths, or the first two. */
const tags: Readonly<Record<string, string>> = {
  workflows: 'Requesting access',
  requests: 'Requesting access',
  access: 'Requesting access',
  approvals: 'Approvals',
  decisions: 'Approvals',
  delegations: 'Approvals',
  reports: 'Reports',
  apis: 'API documents',
  'admin/incidents': 'Administration: runs',
  'admin/runs': 'Administration: runs',
  'admin/workflows': 'Administration: runs',
  'admin/approvals': 'Administration: runs',
  'admin/people': 'Administration: users and groups',
  'admin/groups': 'Administration: users and groups',
  'admin/reconciliations': 'Administration: reconciliations',
  'admin/plans': 'Administration: reconciliations',
}

function tagOf(path: string): string {
  const [, first = '', second = ''] = path.split('/')
  return tags[first] ?? tags[`${first}/${second}`] ?? (first === 'admin' ? 'Administration' : 'Portal')
}

/** Everything below `/main`. */
export const mainApi = new ServedApi<MainApiParts>({
  title: 'Main API',
  version: '1.0.0',
  tag: tagOf,
  answers: {
    ...named(main),
    MainErrors: mainErrors,
    ...named(reportAnswers),
    ...named(preview),
    ...named(requests),
    ...named(access),
    ...named(catalog),
    ...named(notifications),
    ...named(admin),
    ...named(scimJournal),
    ...named(apis),
    ...named(audit),
    ...named(configuration),
    System: system,
    ...named(tokens),
    ...named(people),
    ...named(consoleWorkflows),
    ...named(consoleApprovals),
    ...named(consoleTargets),
    ...named(consoleReconciliations),
    // Clients know the form schemas by OpenUnison's names.
    Attribute: formAttributeView,
    AttributeValueListItem: listItem,
    SubmitAnswer: z.union([main.submitResults, main.submitOutcomes]),
    ReportAnswer: z.union([reports.reportResult, reports.reportReference]),
  },
  bodies: {
    ProfileChange: changesSchema,
    WorkflowRequests: cartSchema,
    CancelRequest: cancelSchema,
    RecentUse: useSchema,
    ReadNotifications: readSchema,
    ChosenNotifications: settingsSchema,
    BulkVote: bulkSchema,
    ApprovalVote: voteSchema,
    ApprovalHandover: handoverSchema,
    RequestText: messageSchema,
    NewDelegation: delegationSchema,
    RetryRun: interventions.retry,
    SkipRun: interventions.skip,
    CancelRun: interventions.cancel,
    ExplainRequest: explainSchema,
    EndPersonSessions: endSessionsSchema,
    PersonChange: personChangeSchema,
    Reassignment: reassignSchema,
    NewScimToken: newTokenSchema,
    ScimTokenChange: tokenChangeSchema,
    NewScimTenant: newTenantSchema,
    ScimTenantChange: tenantChangeSchema,
    PlanRequest: planRequestSchema,
    PlanChange: planChangeSchema,
    AccountDecision: linkSchema,
    AccountDecisionRemoval: unlinkSchema,
    ShownReport: shownReport,
  },
  failure: { description: 'What is wrong', schema: 'MainErrors' },
  operations: routed(
    { ...mainRoutes, ...consoleRoutes },
    {
      ...frontPageOperations,
      ...profileOperations,
      ...catalogOperations,
      ...submitOperations,
      ...requestOperations,
      ...eventOperations,
      ...accessOperations,
      ...notificationOperations,
      ...settingOperations,
      ...apiOperations,
      ...approvalOperations,
      ...reportOperations,
      ...consoleOperations,
    },
  ),
})

/** What a caller can use of it. */
export function mainApiFor(caller: {
  readonly approvals: boolean
  readonly administrator: boolean
}): ServedApi<MainApiParts> {
  const key = `${caller.approvals} ${caller.administrator}`
  const known = variants.get(key)
  if (known !== undefined) return known
  const made = mainApi.only(
    ({ id, path }) =>
      (caller.approvals || !Object.hasOwn(approvalOperations, id)) &&
      (caller.administrator || !path.startsWith('/admin/')),
  )
  variants.set(key, made)
  return made
}

const variants = new Map<string, ServedApi<MainApiParts>>()
