import { Text } from '@mantine/core'
import type { PlanRowView } from '#features/portal/contract/console-reconciliations.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'

const shownAttributes = 6
/** What plans call the login of an account. */
const loginAttribute = 'TREMOLO_USER_ID'

/** What a row of a plan changes: each value from what it is to what it should be, and memberships. */
export function RowChange({ row: { attributes, groups } }: { readonly row: PlanRowView }) {
  const { t, tn } = useTranslation()
  const text = (values: readonly string[]): string =>
    values.length === 0 ? t('plans.noValue') : values.map(isolated).join(', ')
  return (
    <>
      {attributes.slice(0, shownAttributes).map(({ name, from, to }) => (
        <Text key={name} size="sm">
          {`${name === loginAttribute ? t('users.login') : isolated(name)}: ${text(from)} → ${text(to)}`}
        </Text>
      ))}
      {attributes.length > shownAttributes && (
        <Text size="sm" c="dimmed">
          {tn('plans.moreAttributes', attributes.length - shownAttributes)}
        </Text>
      )}
      {groups.add.length > 0 && <Text size="sm">{t('plans.joins', { groups: groups.add.join(', ') })}</Text>}
      {groups.remove.length > 0 && <Text size="sm">{t('plans.leaves', { groups: groups.remove.join(', ') })}</Text>}
    </>
  )
}
