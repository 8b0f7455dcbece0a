import * as z from 'zod'
import * as main from '#contract/schemas/main.ts'
import * as admin from '#contract/schemas/main-admin.ts'
import * as requests from '#contract/schemas/main-requests.ts'
import { type ApiAnswer, type ApiOperation, DescribedApi } from '#modules/shared/http/api-description.ts'
import { interventions } from '#modules/shared/runs/run-administration.ts'
import { bulkSchema, delegationSchema, voteSchema } from './approvals.ts'
import { useSchema } from './front-page.ts'
import { changesSchema } from './profile.ts'
import { cancelSchema } from './requests.ts'
import { cartSchema } from './submit.ts'

/** The schemas of a file by definition name: `userData` is `UserData`. */
const named = (schemas: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodType> =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [`${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, schema]),
  )

const ok = (schema: string, description: string): ApiOperation['answers'] => ({ '200': { description, schema } })
const list = (schema: string, description: string): ApiOperation['answers'] => ({
  '200': { description, schema, many: true },
})
const done: ApiOperation['answers'] = { '204': { description: 'Done' } }
const refused = (description: string): ApiAnswer => ({ description, schema: 'MainErrors' })
const paging = { after: 'The `next` of the page before', limit: 'How many at most' }

const portal: readonly ApiOperation[] = [
  {
    path: '/config',
    method: 'get',
    id: 'getConfig',
    summary: 'What the portal needs to know, for the caller',
    answers: ok('MainConfig', 'The configuration'),
  },
  {
    path: '/user',
    method: 'get',
    id: 'getUser',
    summary: "The caller's profile",
    answers: ok('UserData', 'The profile'),
  },
  {
    path: '/user',
    method: 'put',
    id: 'changeUser',
    summary: "Changes the caller's profile",
    body: 'ProfileChange',
    answers: { ...ok('UserData', 'The profile as it is now'), '500': refused('Failed validation') },
  },
  {
    path: '/orgs',
    method: 'get',
    id: 'getOrgs',
    summary: 'The branches that the caller may see',
    answers: ok('Organization', 'The root of them'),
  },
  {
    path: '/urls',
    method: 'get',
    id: 'listLinks',
    summary: 'The links (badges) of the caller',
    answers: list('PortalLink', 'The links'),
  },
  {
    path: '/urls/org/{orgId}',
    method: 'get',
    id: 'listLinksOfOrg',
    summary: 'Those of one branch',
    answers: list('PortalLink', 'The links'),
  },
  {
    path: '/workflows/org/{orgId}',
    method: 'get',
    id: 'listWorkflows',
    summary: 'What the caller may request in one branch',
    answers: list('WorkflowListItem', 'The workflows'),
  },
  {
    path: '/workflows/candelegate',
    method: 'get',
    id: 'getDelegationRights',
    summary: 'Whether the caller may request a workflow for others, and approve it at once',
    query: { workflowName: 'The workflow', uuid: 'Returned as it is' },
    answers: ok('DelegationRights', 'The rights'),
  },
  {
    path: '/workflows',
    method: 'put',
    id: 'submit',
    summary: 'Submits requests',
    query: { outcomes: '"true": the answer also says what became of decisions' },
    body: 'WorkflowRequests',
    answers: ok('SubmitAnswer', 'How it went, by uuid'),
  },
  {
    path: '/requests',
    method: 'get',
    id: 'listRequests',
    summary: 'What the caller requested, or what was requested for the caller',
    query: { state: 'Only of this state', about: '"mine" or "me"', ...paging },
    answers: ok('RequestList', 'A page of them'),
  },
  {
    path: '/requests/{id}',
    method: 'get',
    id: 'getRequest',
    summary: 'One request',
    answers: ok('RequestDetails', 'The request'),
  },
  {
    path: '/requests/{id}/cancel',
    method: 'post',
    id: 'cancelRequest',
    summary: 'Ends a request',
    body: 'CancelRequest',
    answers: ok('RequestSummary', 'The request as it is now'),
  },
  {
    path: '/search',
    method: 'get',
    id: 'search',
    summary: 'Finds workflows, links and users',
    query: { q: 'What to look for', kind: '"workflow", "url" or "person"; may repeat' },
    answers: ok('SearchResults', 'What was found'),
  },
  {
    path: '/favourites',
    method: 'get',
    id: 'listFavourites',
    summary: "The caller's favorites, and what was used last",
    answers: ok('MarkedItems', 'Both lists'),
  },
  { path: '/favourites/{kind}/{name}', method: 'put', id: 'addFavourite', summary: 'Adds a favorite', answers: done },
  {
    path: '/favourites/{kind}/{name}',
    method: 'delete',
    id: 'removeFavourite',
    summary: 'Removes a favorite',
    answers: done,
  },
  {
    path: '/recent',
    method: 'post',
    id: 'noteUse',
    summary: 'Records that something was used',
    body: 'RecentUse',
    answers: done,
  },
  {
    path: '/access',
    method: 'get',
    id: 'listAccess',
    summary: "The caller's access that expires",
    answers: ok('TimedAccess', 'The access'),
  },
]

const approvals: readonly ApiOperation[] = [
  {
    path: '/approvals',
    method: 'get',
    id: 'listApprovals',
    summary: 'The approvals that wait for the caller',
    query: paging,
    answers: ok('ApprovalList', 'A page of them'),
  },
  {
    path: '/approvals',
    method: 'put',
    id: 'decideApprovals',
    summary: 'Decides several approvals',
    body: 'BulkVote',
    answers: ok('BulkResults', 'How it went, by approval'),
  },
  {
    path: '/approvals/{id}',
    method: 'get',
    id: 'getApproval',
    summary: 'One approval',
    query: { changes: '"true": with what approving it would do' },
    answers: ok('ApprovalDetails', 'The approval'),
  },
  {
    path: '/approvals/{id}',
    method: 'put',
    id: 'decideApproval',
    summary: 'Decides an approval',
    body: 'ApprovalVote',
    answers: { '200': { description: 'Decided' }, '409': refused('It was decided, or has changed') },
  },
  {
    path: '/delegations',
    method: 'get',
    id: 'listDelegations',
    summary: "The caller's deputies, and for whom the caller may decide",
    answers: ok('DelegationList', 'Both lists'),
  },
  {
    path: '/delegations',
    method: 'post',
    id: 'addDelegation',
    summary: 'Appoints a deputy for a period',
    body: 'NewDelegation',
    answers: { '201': { description: 'The period', schema: 'DelegationPeriod' } },
  },
  {
    path: '/delegations/{id}',
    method: 'delete',
    id: 'endDelegation',
    summary: 'Ends the period of a deputy',
    answers: done,
  },
]

const reporting: readonly ApiOperation[] = [
  {
    path: '/reports/org/{orgId}',
    method: 'get',
    id: 'listReports',
    summary: 'The reports of one branch',
    answers: ok('ReportList', 'The reports'),
  },
  {
    path: '/reports/{name}',
    method: 'get',
    id: 'runReport',
    summary: 'Runs a report',
    query: {
      beginDate: 'Where the report declares it',
      endDate: 'Where the report declares it',
      userKey: 'Where the report declares it',
      format: '"csv" or "xlsx": a file instead of JSON',
      excel: '"true": the id of a file instead of the report',
    },
    answers: ok('ReportAnswer', 'The report, or the id of its file'),
  },
  {
    path: '/reports/excel/{reportid}/{file}',
    method: 'get',
    id: 'getReportFile',
    summary: 'The file of a report',
    answers: {
      '200': {
        description: 'A workbook',
        type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      },
    },
  },
]

const runFilter = { name: 'The workflow', subject: 'A login', requestor: 'A login', ...paging }

const administration: readonly ApiOperation[] = [
  {
    path: '/admin/incidents',
    method: 'get',
    id: 'listIncidents',
    summary: 'Runs that an administrator has to look at',
    query: runFilter,
    answers: ok('AdminRuns', 'A page of them'),
  },
  {
    path: '/admin/runs',
    method: 'get',
    id: 'listRuns',
    summary: 'Stored runs',
    query: { state: 'Only of this state; may repeat', ...runFilter },
    answers: ok('AdminRuns', 'A page of them'),
  },
  {
    path: '/admin/runs/{id}',
    method: 'get',
    id: 'getRun',
    summary: 'One run',
    query: { after: 'The id of a step: only the steps after it' },
    answers: ok('AdminRunDetails', 'The run'),
  },
  ...(['retry', 'skip', 'cancel'] as const).map(
    (action): ApiOperation => ({
      path: `/admin/runs/{id}/${action}`,
      method: 'post',
      id: `${action}Run`,
      summary: { retry: 'Tries the step again', skip: 'Continues with the next step', cancel: 'Ends the run' }[action],
      body: `${action.slice(0, 1).toUpperCase()}${action.slice(1)}Run`,
      answers: ok('AdminRun', 'The run as it is now'),
    }),
  ),
  {
    path: '/admin/scim-journal',
    method: 'get',
    id: 'getScimJournal',
    summary: 'Calls of SCIM clients',
    query: {
      gateway: 'An Application; may repeat',
      failed: '"true": only calls that failed',
      status: 'Only with this status',
      since: 'Such as 1h, or a date',
      ...paging,
    },
    answers: ok('ScimJournalPage', 'A page of them'),
  },
  {
    path: '/admin/statistics',
    method: 'get',
    id: 'getStatistics',
    summary: 'Counts of requests, approvals, tokens and SCIM calls',
    query: { from: 'ISO 8601', to: 'ISO 8601', by: '"hour" or "day"' },
    answers: ok('Statistics', 'The counts'),
  },
]

/** Clients know the form schemas by OpenUnison's names. */
const { formAttributeView, formAttributeType: _, listItem, ...mainAnswers } = main

/** Everything below `/main`. */
export const mainApi = new DescribedApi({
  title: 'Main API',
  version: '1.0.0',
  answers: {
    ...named(mainAnswers),
    ...named(requests),
    ...named(admin),
    Attribute: formAttributeView,
    AttributeValueListItem: listItem,
    SubmitAnswer: z.union([main.submitResults, main.submitOutcomes]),
    ReportAnswer: z.union([main.reportResult, main.reportReference]),
  },
  bodies: {
    ProfileChange: changesSchema,
    WorkflowRequests: cartSchema,
    CancelRequest: cancelSchema,
    RecentUse: useSchema,
    BulkVote: bulkSchema,
    ApprovalVote: voteSchema,
    NewDelegation: delegationSchema,
    RetryRun: interventions.retry,
    SkipRun: interventions.skip,
    CancelRun: interventions.cancel,
  },
  failure: refused('What is wrong'),
  operations: [...portal, ...approvals, ...reporting, ...administration],
})
