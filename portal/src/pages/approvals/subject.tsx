import { Text, Title } from '@mantine/core'
import type { ApprovalDetails } from '#contract/main-requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Facts } from '../../components/facts.tsx'
import { NameBadges } from '../../components/name-badges.tsx'

/** Whom it is about: as they are today, or what the request says of somebody who is new. */
export function Subject({ userObj }: Pick<ApprovalDetails, 'userObj'>) {
  const { t } = useTranslation()
  const { isNew, attribs, groups } = userObj
  const facts = Object.entries(attribs).map(([name, { values }]) => ({ name, value: values.join(', ') || '–' }))
  return (
    <section aria-labelledby="subject">
      <Title order={3} size="h6" mt="md" mb="xs" id="subject">
        {t(isNew ? 'approval.newPerson' : 'approval.person')}
      </Title>
      {isNew && <Text mb="xs">{t(facts.length === 0 ? 'approval.newPersonBare' : 'approval.newPersonText')}</Text>}
      <Facts facts={facts} />
      {groups.length > 0 && (
        <>
          <Text size="sm" c="dimmed" mt="sm" mb={4}>
            {t('profile.groups')}
          </Text>
          <NameBadges names={groups} />
        </>
      )}
    </section>
  )
}
