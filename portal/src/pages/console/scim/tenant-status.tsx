import type { ScimTenantView } from '#features/portal/contract/console-tokens.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import type { IconName } from '../../../components/icon.tsx'
import { Status, type Tone } from '../../../components/status.tsx'

const looks = {
  pending: ['waiting', 'clock', 'tenants.pending'],
  served: ['good', 'check', 'tenants.served'],
  disabled: ['plain', 'close', 'tenants.disabled'],
  refused: ['bad', 'warning', 'tenants.refused'],
} as const satisfies Record<ScimTenantView['state'], readonly [Tone, IconName, string]>

export function TenantStatus({ tenant }: { readonly tenant: Pick<ScimTenantView, 'state'> }) {
  const { t } = useTranslation()
  const [tone, icon, text] = looks[tenant.state]
  return <Status tone={tone} icon={icon} text={t(text)} />
}
