import * as z from 'zod'
import { approvalOperations, reassignSchema } from '#features/portal/console/approvals.ts'
import { auditOperations } from '#features/portal/console/audit.ts'
import { configurationOperations, explainSchema } from '#features/portal/console/configuration.ts'
import { groupOperations } from '#features/portal/console/groups.ts'
import { peopleOperations } from '#features/portal/console/people.ts'
import {
  endSessionsSchema,
  personChangeOperations,
  personChangeSchema,
} from '#features/portal/console/person-changes.ts'
import { scimOperations } from '#features/portal/console/scim.ts'
import { systemOperations } from '#features/portal/console/system.ts'
import { targetOperations } from '#features/portal/console/targets.ts'
import { tokenOperations } from '#features/portal/console/tokens.ts'
import { workflowOperations } from '#features/portal/console/workflows.ts'
import * as consoleApprovals from '#features/portal/contract/console-approvals.ts'
import * as audit from '#features/portal/contract/console-audit.ts'
import * as configuration from '#features/portal/contract/console-configuration.ts'
import * as people from '#features/portal/contract/console-people.ts'
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
import { interventions, runOperations } from '#features/portal/runs/run-administration.ts'
import * as reports from '#features/reports/contract/reports.ts'
import * as scimJournal from '#features/scim/contract/journal.ts'
import { DescribedApi, type OperationDescription } from '#sdk/api/api-description.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { formAttributeView, listItem } from '#sdk/contract/forms.ts'
import * as preview from '#sdk/contract/preview.ts'
import { bulkSchema, delegationSchema, handoverSchema, messageSchema, voteSchema } from './approvals.ts'
import { useSchema } from './front-page.ts'
import { settingsSchema } from './notification-settings.ts'
import { readSchema } from './notifications.ts'
import { changesSchema } from './profile.ts'
import { cancelSchema } from './requests.ts'
import { cartSchema } from './submit.ts'

/** The schemas of a file by definition name: `userData` is `UserData`. */
const named = (schemas: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodType> =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [`${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, schema]),
  )

type Operations = Readonly<Record<string, OperationDescription>>

const paging = { after: 'The `next` of the page before', limit: 'How many at most' }

const portal: Operations = {
  getConfig: { route: 'GET /config', summary: 'What the portal needs to know, for the caller', answer: 'MainConfig' },
  getUser: { route: 'GET /user', summary: "The caller's profile", answer: 'UserData' },
  changeUser: {
    route: 'PUT /user',
    summary: "Changes the caller's profile",
    body: 'ProfileChange',
    answer: 'UserData',
    failures: { '500': 'Failed validation' },
  },
  getOrgs: { route: 'GET /orgs', summary: 'The branches that the caller may see', answer: 'Organization' },
  listLinks: { route: 'GET /urls', summary: 'The links (badges) of the caller', answer: 'PortalLink[]' },
  listLinksOfOrg: { route: 'GET /urls/org/{orgId}', summary: 'Those of one branch', answer: 'PortalLink[]' },
  listWorkflows: {
    route: 'GET /workflows/org/{orgId}',
    summary: 'What the caller may request in one branch',
    answer: 'WorkflowListItem[]',
  },
  getDelegationRights: {
    route: 'GET /workflows/candelegate',
    summary: 'Whether the caller may request a workflow for others, and approve it at once',
    query: { workflowName: 'The workflow', uuid: 'Returned as it is' },
    requiredQuery: ['workflowName'],
    answer: 'DelegationRights',
  },
  getCatalogItem: {
    route: 'GET /workflows/named/{name}',
    summary: 'One workflow that the caller may request: its description, who decides, and how long that takes',
    answer: 'CatalogItem',
  },
  submit: {
    route: 'PUT /workflows',
    summary: 'Submits requests',
    query: { outcomes: '"true": the answer also says what became of decisions' },
    body: 'WorkflowRequests',
    answer: 'SubmitAnswer',
  },
  listRequests: {
    route: 'GET /requests',
    summary: 'What the caller requested, or what was requested for the caller',
    query: { state: 'Only of this state', about: '"mine" or "me"', ...paging },
    answer: 'RequestList',
  },
  getEvents: {
    route: 'GET /events',
    summary: 'Server-sent events that say what changed for the caller, until the session ends',
    query: {
      sessions: '"true": also when a session of the caller begins or ends',
      sessionsOf: 'For administrators: also when a session of the user with this id begins or ends',
    },
    answers: {
      '200': {
        description: 'Events "requests", "approvals", "runs", "sessions" and "all"',
        type: 'text/event-stream',
      },
    },
    failures: { '403': 'sessionsOf, and the caller is not an administrator', '429': 'The caller has 32 streams open' },
  },
  getRequest: { route: 'GET /requests/{id}', summary: 'One request', answer: 'RequestDetails' },
  cancelRequest: {
    route: 'POST /requests/{id}/cancel',
    summary: 'Ends a request',
    body: 'CancelRequest',
    answer: 'RequestSummary',
  },
  answerApprover: {
    route: 'POST /requests/{id}/answers',
    summary: 'Answers the question of an approver about a request of the caller',
    body: 'RequestText',
    failures: { '409': 'No one waits for an answer' },
  },
  search: {
    route: 'GET /search',
    summary: 'Finds workflows, links and users',
    query: { q: 'What to look for', kind: '"workflow", "url" or "person"; may repeat' },
    requiredQuery: ['q'],
    answer: 'SearchResults',
  },
  listFavorites: {
    route: 'GET /favorites',
    summary: "The caller's favorites, and what was used last",
    answer: 'MarkedItems',
  },
  addFavorite: { route: 'PUT /favorites/{kind}/{name}', summary: 'Adds a favorite' },
  removeFavorite: { route: 'DELETE /favorites/{kind}/{name}', summary: 'Removes a favorite' },
  noteUse: { route: 'POST /recent', summary: 'Records that something was used', body: 'RecentUse' },
  listAccess: {
    route: 'GET /access',
    summary: 'What the caller has and had, since when, until when, and through which request',
    answer: 'OwnAccess',
  },
  giveBackAccess: {
    route: 'POST /access/{id}/return',
    summary: 'Ends access before its expiry',
    answers: { '202': { description: 'A run removes the access', schema: 'GivenBackAccess' } },
    failures: { '409': 'It has already ended' },
  },
  listNotifications: {
    route: 'GET /notifications',
    summary: 'Open approvals of the caller, outcomes of requests, questions and answers, and access that expires soon',
    query: { limit: 'How many at most; 0 for the count alone' },
    answer: 'NotificationList',
  },
  readNotifications: {
    route: 'PUT /notifications/read',
    summary: 'Marks notifications as read',
    body: 'ReadNotifications',
    answer: 'NotificationList',
  },
  listApis: {
    route: 'GET /apis',
    summary: 'The APIs of the running configuration that the caller may know of',
    answer: 'ApiList',
  },
  getApiDocument: {
    route: 'GET /apis/{name}/{document}',
    summary: 'A document of one of them: openapi.json, or swagger.json where the list names it',
    answer: 'ApiDocument',
    failures: { '404': 'The caller knows no such API or document' },
  },
  getNotificationSettings: {
    route: 'GET /notifications/settings',
    summary: 'When the caller is mailed about what',
    answer: 'NotificationSettings',
  },
  changeNotificationSettings: {
    route: 'PUT /notifications/settings',
    summary: 'Chooses when the caller is mailed about what: as it happens, in the digest, or never',
    body: 'ChosenNotifications',
    answer: 'NotificationSettings',
  },
}

const approvals: Operations = {
  listApprovals: {
    route: 'GET /approvals',
    summary: 'The approvals that wait for the caller',
    query: paging,
    answer: 'ApprovalList',
  },
  decideApprovals: {
    route: 'PUT /approvals',
    summary: 'Decides several approvals',
    body: 'BulkVote',
    answer: 'BulkResults',
  },
  getApproval: {
    route: 'GET /approvals/{id}',
    summary: 'One approval',
    query: { changes: '"true": with what approving it would do' },
    answer: 'ApprovalDetails',
  },
  decideApproval: {
    route: 'PUT /approvals/{id}',
    summary: 'Decides an approval',
    body: 'ApprovalVote',
    answers: { '200': { description: 'Decided' } },
    failures: { '409': 'It was decided, or has changed' },
  },
  handOverApproval: {
    route: 'POST /approvals/{id}/reassign',
    summary: 'Passes an approval that the caller may decide to another user',
    body: 'ApprovalHandover',
    failures: { '409': 'It was decided', '412': 'It has changed' },
  },
  askRequester: {
    route: 'POST /approvals/{id}/questions',
    summary: 'Asks the requester of an approval that the caller may decide',
    body: 'RequestText',
    failures: { '409': 'It was decided, or the requester registered without signing in' },
  },
  listDecisions: {
    route: 'GET /decisions',
    summary: 'What the caller decided, the latest first',
    query: paging,
    answer: 'DecisionList',
  },
  listDelegations: {
    route: 'GET /delegations',
    summary: "The caller's deputies, and for whom the caller may decide",
    answer: 'DelegationList',
  },
  addDelegation: {
    route: 'POST /delegations',
    summary: 'Appoints a deputy for a period',
    body: 'NewDelegation',
    answers: { '201': { description: 'The period', schema: 'DelegationPeriod' } },
  },
  endDelegation: { route: 'DELETE /delegations/{id}', summary: 'Ends the period of a deputy' },
}

const reporting: Operations = {
  listReports: { route: 'GET /reports/org/{orgId}', summary: 'The reports of one branch', answer: 'ReportList' },
  runReport: {
    route: 'GET /reports/{name}',
    summary: 'Runs a report',
    query: {
      beginDate: 'Where the report declares it',
      endDate: 'Where the report declares it',
      userKey: 'Where the report declares it',
      format: '"csv" or "xlsx": a file instead of JSON',
      excel: '"true": the id of a file instead of the report',
    },
    answer: 'ReportAnswer',
  },
  convertReport: {
    route: 'PUT /reports/excelx',
    summary: 'A workbook of a report that the caller sees, run again',
    body: 'ShownReport',
    answers: {
      '200': {
        description: 'A workbook',
        type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      },
    },
    failures: { '404': 'The report is older than an hour, or the caller may no longer see it' },
  },
  getReportFile: {
    route: 'GET /reports/excel/{reportid}/{file}',
    summary: 'The file of a report',
    answers: {
      '200': {
        description: 'A workbook',
        type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      },
    },
  },
}

const administration: Operations = {
  ...runOperations('/admin'),
  getStatistics: {
    route: 'GET /admin/statistics',
    summary: 'Counts of requests, approvals, tokens and SCIM calls',
    query: { from: 'ISO 8601', to: 'ISO 8601', by: '"hour" or "day"' },
    answer: 'Statistics',
  },
  ...workflowOperations,
  ...approvalOperations,
  ...targetOperations,
}

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
}

function tagOf(path: string): string {
  const [, first = '', second = ''] = path.split('/')
  return tags[first] ?? tags[`${first}/${second}`] ?? (first === 'admin' ? 'Administration' : 'Portal')
}

/** Everything below `/main`. */
export const mainApi = new DescribedApi({
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
    ShownReport: shownReport,
  },
  failure: { description: 'What is wrong', schema: 'MainErrors' },
  operations: {
    ...portal,
    ...approvals,
    ...reporting,
    ...administration,
    ...auditOperations,
    ...configurationOperations,
    ...scimOperations,
    ...systemOperations,
    ...tokenOperations,
    ...peopleOperations,
    ...personChangeOperations,
    ...groupOperations,
  },
})

/** What a caller can use of it. */
export function mainApiFor(caller: { readonly approvals: boolean; readonly administrator: boolean }): DescribedApi {
  const key = `${caller.approvals} ${caller.administrator}`
  const known = variants.get(key)
  if (known !== undefined) return known
  const made = mainApi.only(
    ({ id, path }) =>
      (caller.approvals || !Object.hasOwn(approvals, id)) && (caller.administrator || !path.startsWith('/admin/')),
  )
  variants.set(key, made)
  return made
}

const variants = new Map<string, DescribedApi>()
