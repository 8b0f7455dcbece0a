import type { IconName } from '../components/icon.tsx'
import type { MessageKey } from './messages.ts'

export interface ConsoleEntry {
  readonly to: `/console/${string}`
  readonly title: MessageKey
  readonly icon: IconName
}

/** The pages of administrators, in the order of the navigation. */
export const consolePages: readonly ConsoleEntry[] = [
  { to: '/console/people', title: 'page.users', icon: 'person' },
  { to: '/console/groups', title: 'page.groups', icon: 'people' },
  { to: '/console/targets', title: 'page.targets', icon: 'server' },
  { to: '/console/reconciliations', title: 'page.reconciliations', icon: 'refresh' },
  { to: '/console/workflows', title: 'page.workflows', icon: 'flow' },
  { to: '/console/runs', title: 'page.runs', icon: 'list' },
  { to: '/console/approvals', title: 'page.openApprovals', icon: 'check' },
  { to: '/console/scim', title: 'dashboard.journal', icon: 'list' },
  { to: '/console/scim-clients', title: 'page.scimClients', icon: 'token' },
  { to: '/console/tokens', title: 'tokens.title', icon: 'token' },
  { to: '/console/audit', title: 'audit.title', icon: 'search' },
  { to: '/console/configuration', title: 'configuration.title', icon: 'folder' },
  { to: '/console/system', title: 'system.title', icon: 'screen' },
]
