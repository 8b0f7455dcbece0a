import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { consolePart } from './catalogs.ts'
import { root, words } from './root-route.ts'

/** The exported component of a page, loaded with its texts when it is first shown. */
const page = <M extends Record<string, unknown>, N extends keyof M & string>(load: () => Promise<M>, name: N) =>
  lazyRouteComponent(consolePart(load), name)

const consoleAudit = createRoute({
  getParentRoute: () => root,
  path: '/console/audit',
  validateSearch: words('subject', 'requestor', 'target', 'workflow', 'requestId', 'from', 'until'),
  component: page(() => import('../pages/console/audit/audit-page.tsx'), 'AuditPage'),
})

const consoleSystem = createRoute({
  getParentRoute: () => root,
  path: '/console/system',
  component: page(() => import('../pages/console/system/system-page.tsx'), 'SystemPage'),
})

const consoleScim = createRoute({
  getParentRoute: () => root,
  path: '/console/scim',
  validateSearch: words('gateway', 'status', 'failed', 'since'),
  component: page(() => import('../pages/console/scim/scim-page.tsx'), 'ScimPage'),
})

const scimClients = createRoute({
  getParentRoute: () => root,
  path: '/console/scim-clients',
  validateSearch: words('q'),
  component: page(() => import('../pages/console/scim/scim-clients-page.tsx'), 'ScimClientsPage'),
})

const scimTenant = createRoute({
  getParentRoute: () => root,
  path: '/console/scim-clients/$name',
  component: page(() => import('../pages/console/scim/tenant-page.tsx'), 'TenantPage'),
})

const consoleTokens = createRoute({
  getParentRoute: () => root,
  path: '/console/tokens',
  validateSearch: words('endpoint', 'namespace', 'serviceAccount'),
  component: page(() => import('../pages/console/tokens/tokens-page.tsx'), 'TokensPage'),
})

const consoleConfiguration = createRoute({
  getParentRoute: () => root,
  path: '/console/configuration',
  validateSearch: words('kind', 'name', 'status'),
  component: page(() => import('../pages/console/configuration/configuration-page.tsx'), 'ConfigurationPage'),
})

const people = createRoute({
  getParentRoute: () => root,
  path: '/console/people',
  validateSearch: words('q'),
  component: page(() => import('../pages/console/people/people-page.tsx'), 'PeoplePage'),
})

const person = createRoute({
  getParentRoute: () => root,
  path: '/console/people/$id',
  validateSearch: words('tab'),
  component: page(() => import('../pages/console/people/person-page.tsx'), 'PersonPage'),
})

const groups = createRoute({
  getParentRoute: () => root,
  path: '/console/groups',
  validateSearch: words('q'),
  component: page(() => import('../pages/console/groups/groups-page.tsx'), 'GroupsPage'),
})

const group = createRoute({
  getParentRoute: () => root,
  path: '/console/groups/$id',
  component: page(() => import('../pages/console/groups/group-page.tsx'), 'GroupPage'),
})

const consoleRuns = createRoute({
  getParentRoute: () => root,
  path: '/console/runs',
  validateSearch: words('state', 'name', 'subject', 'requestor', 'target', 'unfinished', 'from', 'until'),
  component: page(() => import('../pages/console/runs/runs-page.tsx'), 'RunsPage'),
})

const consoleRun = createRoute({
  getParentRoute: () => root,
  path: '/console/runs/$id',
  component: page(() => import('../pages/console/runs/run-page.tsx'), 'RunPage'),
})

const consoleWorkflows = createRoute({
  getParentRoute: () => root,
  path: '/console/workflows',
  validateSearch: words('q'),
  component: page(() => import('../pages/console/workflows/workflows-page.tsx'), 'WorkflowsPage'),
})

const consoleWorkflow = createRoute({
  getParentRoute: () => root,
  path: '/console/workflows/$name',
  component: page(() => import('../pages/console/workflows/workflow-page.tsx'), 'WorkflowPage'),
})

const consoleApprovals = createRoute({
  getParentRoute: () => root,
  path: '/console/approvals',
  validateSearch: words('workflow', 'approver', 'overdue'),
  component: page(() => import('../pages/console/approvals/approvals-page.tsx'), 'OpenApprovalsPage'),
})

const consoleTargets = createRoute({
  getParentRoute: () => root,
  path: '/console/targets',
  validateSearch: words('q'),
  component: page(() => import('../pages/console/targets/targets-page.tsx'), 'TargetsPage'),
})

const reconciliations = createRoute({
  getParentRoute: () => root,
  path: '/console/reconciliations',
  validateSearch: words('q'),
  component: page(() => import('../pages/console/reconciliations/reconciliations-page.tsx'), 'ReconciliationsPage'),
})

const reconciliation = createRoute({
  getParentRoute: () => root,
  path: '/console/reconciliations/$name',
  component: page(() => import('../pages/console/reconciliations/reconciliation-page.tsx'), 'ReconciliationPage'),
})

const links = createRoute({
  getParentRoute: () => root,
  path: '/console/reconciliations/$name/links',
  component: page(() => import('../pages/console/reconciliations/links-page.tsx'), 'LinksPage'),
})

const plan = createRoute({
  getParentRoute: () => root,
  path: '/console/plans/$id',
  validateSearch: words('kind', 'action', 'state', 'login'),
  component: page(() => import('../pages/console/reconciliations/plan-page.tsx'), 'PlanPage'),
})

/** The pages of administrators. */
export const consoleRoutes = [
  consoleAudit,
  consoleSystem,
  consoleScim,
  scimClients,
  scimTenant,
  consoleTokens,
  consoleConfiguration,
  people,
  person,
  groups,
  group,
  consoleRuns,
  consoleRun,
  consoleWorkflows,
  consoleWorkflow,
  consoleApprovals,
  consoleTargets,
  reconciliations,
  reconciliation,
  links,
  plan,
] as const
