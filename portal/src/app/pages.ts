import type { MainConfig } from '#features/portal/contract/main.ts'
import type { PortalSettings, portalPages } from '#features/portal/contract/portal.ts'
import type { IconName } from '../components/icon.tsx'
import type { MessageKey } from './messages.ts'

export interface PageEntry {
  readonly id: Exclude<(typeof portalPages)[number], 'console'>
  readonly to:
    | '/'
    | '/request'
    | '/requests'
    | '/access'
    | '/approvals'
    | '/token'
    | '/register'
    | '/reports'
    | '/dashboard'
    | '/profile'
    | '/security'
    | '/apis'
  readonly title: MessageKey
  readonly icon: IconName
  /** Where it is linked besides the palette; in the navigation if absent. */
  readonly place?: 'person menu'
}

/** The pages, in the order of the navigation. */
const pages: readonly PageEntry[] = [
  { id: 'front-page', to: '/', title: 'page.home', icon: 'home' },
  { id: 'request-access', to: '/request', title: 'page.request', icon: 'key' },
  { id: 'requests', to: '/requests', title: 'page.requests', icon: 'list' },
  { id: 'access', to: '/access', title: 'page.access', icon: 'card' },
  { id: 'approvals', to: '/approvals', title: 'page.approvals', icon: 'check' },
  { id: 'token', to: '/token', title: 'page.token', icon: 'token' },
  { id: 'register', to: '/register', title: 'page.register', icon: 'people' },
  { id: 'reports', to: '/reports', title: 'page.reports', icon: 'chart' },
  { id: 'dashboard', to: '/dashboard', title: 'page.dashboard', icon: 'screen' },
  { id: 'user', to: '/profile', title: 'page.profile', icon: 'person' },
  { id: 'security', to: '/security', title: 'page.security', icon: 'shield' },
  { id: 'apis', to: '/apis', title: 'page.apis', icon: 'code', place: 'person menu' },
]

type Known = Pick<MainConfig, 'hidePages' | 'enableApprovals' | 'administrator'>
type Apis = PortalSettings['apis']

/** Pages with a condition. */
const conditions: Readonly<Record<string, (known: Known, apis: Apis) => boolean>> = {
  approvals: ({ enableApprovals }) => enableApprovals,
  token: (_, { token }) => token !== undefined,
  register: (_, { register }) => register !== undefined,
  dashboard: ({ administrator }) => administrator,
  security: (_, { account }) => account !== undefined,
}

export const shownPages = (known: Known, apis: Apis): readonly PageEntry[] =>
  pages.filter(({ id }) => !known.hidePages.includes(id) && (conditions[id]?.(known, apis) ?? true))
