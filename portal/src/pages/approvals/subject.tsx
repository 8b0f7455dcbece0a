import { Alert, Text, Title } from '@mantine/core'
import type { ApprovalDetails } from '#features/portal/contract/main-requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Facts } from '../../components/facts.tsx'
import { Groups } from '../../components/groups.tsx'
import { Icon } from '../../components/icon.tsx'

type SubjectProps = Pick<ApprovalDetails, 'userObj' | 'registration' | 'existing'>

/** The subject: the current user, or what the request says about a new user, or what a registration says. */
export function Subject({ userObj, registration, existing }: SubjectProps) {
  const { t } = useTranslation()
  const { isNew, attribs, groups } = userObj
  const facts = Object.entries(attribs).map(([name, { values, label, valueLabels }]) => ({
    key: name,
    name: label ?? name,
    value: (valueLabels ?? values).join(', ') || '–',
  }))
  const isRegistration = registration === true
  return (
    <section aria-labelledby="subject">
      <Title order={3} size="h6" mt="md" mb="xs" id="subject">
        {t(isRegistration ? 'approval.submitted' : isNew ? 'approval.newPerson' : 'approval.person')}
      </Title>
      {isNew && !isRegistration && (
        <Text mb="xs">{t(facts.length === 0 ? 'approval.newPersonBare' : 'approval.newPersonText')}</Text>
      )}
      {existing !== undefined && <Existing existing={existing} />}
      <Facts facts={facts} />
      {groups.length > 0 && (
        <>
          <Text size="sm" c="dimmed" mt="sm" mb={4}>
            {t('profile.groups')}
          </Text>
          <Groups groups={groups} />
        </>
      )}
    </section>
  )
}

/** Warns the approver of a registration that can't be approved any more. */
function Existing({ existing }: { readonly existing: NonNullable<ApprovalDetails['existing']> }) {
  const { t } = useTranslation()
  const { checked, login, attributes } = existing
  if (checked && !login && attributes.length === 0) return null
  const text = !checked
    ? t('approval.existsUnknown')
    : login
      ? t('approval.loginExists')
      : t('approval.valueExists', { names: attributes.join(', ') })
  return (
    <Alert color="yellow" variant="outline" icon={<Icon name="warning" />} role="status" mb="xs">
      {text}
    </Alert>
  )
}
