import type { AuditEntryView } from '#features/portal/contract/console-audit.ts'
import type { Translation } from '../../../app/i18n.tsx'

const actions = {
  add: 'auditAction.add',
  replace: 'auditAction.replace',
  delete: 'auditAction.delete',
  issue: 'auditAction.issue',
  refuse: 'auditAction.refuse',
} as const

const kinds = {
  entry: 'auditKind.entry',
  attribute: 'auditKind.attribute',
  group: 'auditKind.group',
  token: 'auditKind.token',
  session: 'auditKind.session',
  key: 'auditKind.key',
  pod: 'auditKind.pod',
  audit: 'auditKind.audit',
} as const

/** What an entry says, such as `Added: attribute mail = a@example.com`. */
export function changeText({ kind, action, attribute, value }: AuditEntryView, t: Translation['t']): string {
  const what = [t(kinds[kind]), attribute].filter((word) => word !== '').join(' ')
  return `${t(actions[action])}: ${what}${value === undefined ? '' : ` = ${value}`}`
}
