import { Text } from '@mantine/core'
import type { EntryAttribute } from '#features/portal/contract/console-people.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Facts } from '../../components/facts.tsx'

interface EntryFactsProps {
  readonly dn: string
  readonly attributes: readonly EntryAttribute[]
}

/** The entry of a user or group as the directory has it. */
export function EntryFacts({ dn, attributes }: EntryFactsProps) {
  return (
    <Facts
      facts={[
        { key: ' dn', name: 'DN', value: dn },
        ...attributes.map((attribute) => ({
          key: attribute.name,
          name: attribute.name,
          value: <Values attribute={attribute} />,
        })),
      ]}
    />
  )
}

function Values({ attribute: { values, hidden, cut } }: { readonly attribute: EntryAttribute }) {
  const { t } = useTranslation()
  if (hidden === true) return <Text c="dimmed">{t('users.hidden')}</Text>
  return (
    <>
      {values.map((value, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a value may be there twice
        <div key={i}>{isolated(value)}</div>
      ))}
      {cut === true && (
        <Text size="sm" c="dimmed">
          {t('users.cut')}
        </Text>
      )}
    </>
  )
}
