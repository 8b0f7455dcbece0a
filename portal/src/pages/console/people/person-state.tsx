import type { ConsolePerson } from '#features/portal/contract/console-people.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { Status } from '../../../components/status.tsx'

export function PersonState({ person }: { readonly person: Pick<ConsolePerson, 'deactivated'> }) {
  const { t } = useTranslation()
  return person.deactivated ? (
    <Status tone="bad" icon="close" text={t('users.deactivated')} />
  ) : (
    <Status tone="plain" icon="check" text={t('users.active')} />
  )
}
