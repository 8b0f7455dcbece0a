import { createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { apisPart, settingsPart } from './catalogs.ts'
import { consoleRoutes } from './console-routes.ts'
import { NotFound, PageFailure, PagePending } from './fallbacks.tsx'
import { part } from './part.ts'
import { root, words } from './root-route.ts'
import { settings } from './settings.ts'

/** The exported component of a page, loaded when it is first shown. */
const page = <M extends Record<string, unknown>, N extends keyof M & string>(load: () => Promise<M>, name: N) =>
  lazyRouteComponent(part(load), name)

/** A page that exists only if its API does. */
const where = <P,>(api: string | undefined, found: P): P | typeof NotFound => (api === undefined ? NotFound : found)

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: words('q', 'org'),
  component: page(() => import('../pages/home/home-page.tsx'), 'HomePage'),
})

const request = createRoute({
  getParentRoute: () => root,
  path: '/request',
  validateSearch: words('q', 'org'),
  component: page(() => import('../pages/request-access/request-page.tsx'), 'RequestPage'),
})

const item = createRoute({
  getParentRoute: () => root,
  path: '/request/item',
  validateSearch: words('name', 'label'),
  component: page(() => import('../pages/request-access/item-page.tsx'), 'ItemPage'),
})

const cart = createRoute({
  getParentRoute: () => root,
  path: '/request/cart',
  component: page(() => import('../pages/request-access/cart-page.tsx'), 'CartPage'),
})

const requests = createRoute({
  getParentRoute: () => root,
  path: '/requests',
  validateSearch: words('about', 'state', 'q'),
  component: page(() => import('../pages/requests/requests-page.tsx'), 'RequestsPage'),
})

const oneRequest = createRoute({
  getParentRoute: () => root,
  path: '/requests/$id',
  component: page(() => import('../pages/requests/request-details-page.tsx'), 'RequestDetailsPage'),
})

const access = createRoute({
  getParentRoute: () => root,
  path: '/access',
  component: page(() => import('../pages/access/access-page.tsx'), 'AccessPage'),
})

const approvals = createRoute({
  getParentRoute: () => root,
  path: '/approvals',
  validateSearch: words('q', 'workflow', 'show'),
  component: page(() => import('../pages/approvals/approvals-page.tsx'), 'ApprovalsPage'),
})

const deputies = createRoute({
  getParentRoute: () => root,
  path: '/approvals/deputies',
  component: page(() => import('../pages/approvals/deputies-page.tsx'), 'DeputiesPage'),
})

const oneApproval = createRoute({
  getParentRoute: () => root,
  path: '/approvals/$id',
  component: page(() => import('../pages/approvals/approval-page.tsx'), 'ApprovalPage'),
})

const notifications = createRoute({
  getParentRoute: () => root,
  path: '/notifications',
  component: page(() => import('../pages/notifications/notifications-page.tsx'), 'NotificationsPage'),
})

const notificationSettings = createRoute({
  getParentRoute: () => root,
  path: '/notifications/settings',
  component: lazyRouteComponent(
    settingsPart(() => import('../pages/notifications/notification-settings-page.tsx')),
    'NotificationSettingsPage',
  ),
})

const profile = createRoute({
  getParentRoute: () => root,
  path: '/profile',
  component: page(() => import('../pages/profile/profile-page.tsx'), 'ProfilePage'),
})

const token = createRoute({
  getParentRoute: () => root,
  path: '/token',
  component: where(
    settings.apis.token,
    page(() => import('../pages/token/token-page.tsx'), 'TokenPage'),
  ),
})

const register = createRoute({
  getParentRoute: () => root,
  path: '/register',
  validateSearch: words('invitation'),
  component: where(
    settings.apis.register,
    page(() => import('../pages/register/register-page.tsx'), 'RegisterPage'),
  ),
})

const reports = createRoute({
  getParentRoute: () => root,
  path: '/reports',
  validateSearch: words('q'),
  component: page(() => import('../pages/reports/reports-page.tsx'), 'ReportsPage'),
})

const oneReport = createRoute({
  getParentRoute: () => root,
  path: '/reports/$name',
  validateSearch: words('beginDate', 'endDate', 'userKey'),
  component: page(() => import('../pages/reports/report-page.tsx'), 'ReportPage'),
})

const dashboard = createRoute({
  getParentRoute: () => root,
  path: '/dashboard',
  validateSearch: words('period'),
  component: page(() => import('../pages/dashboard/dashboard-page.tsx'), 'DashboardPage'),
})

const security = createRoute({
  getParentRoute: () => root,
  path: '/security',
  component: where(
    settings.apis.account,
    lazyRouteComponent(
      settingsPart(() => import('../pages/security/security-page.tsx')),
      'SecurityPage',
    ),
  ),
})

const apis = createRoute({
  getParentRoute: () => root,
  path: '/apis',
  component: lazyRouteComponent(
    apisPart(() => import('../pages/apis/apis-page.tsx')),
    'ApisPage',
  ),
})

const oneApi = createRoute({
  getParentRoute: () => root,
  path: '/apis/$name',
  validateSearch: words('q', 'operation'),
  component: lazyRouteComponent(
    apisPart(() => import('../pages/apis/api-page.tsx')),
    'ApiPage',
  ),
})

const signedIn = createRoute({
  getParentRoute: () => root,
  path: '/signed-in',
  component: page(() => import('../pages/signed-in/signed-in-page.tsx'), 'SignedInPage'),
})

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    request,
    item,
    cart,
    requests,
    oneRequest,
    access,
    approvals,
    deputies,
    oneApproval,
    notifications,
    notificationSettings,
    profile,
    token,
    register,
    reports,
    oneReport,
    dashboard,
    security,
    apis,
    oneApi,
    signedIn,
    ...consoleRoutes,
  ]),
  basepath: settings.base === '' ? '/' : settings.base,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingComponent: PagePending,
  defaultErrorComponent: PageFailure,
  defaultNotFoundComponent: NotFound,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
