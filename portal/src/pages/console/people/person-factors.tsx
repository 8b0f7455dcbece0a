import { Button, Group, Paper, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { personFactorsQuery, resetFactors } from '../../../api/people.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Answer } from '../../../components/answer.tsx'
import { Icon } from '../../../components/icon.tsx'
import { ReasonDialog } from '../../../components/reason-dialog.tsx'
import { nameOf, type PersonPart } from './person-part.ts'

/** The second factors of a user. */
export function PersonFactors({ person, mayChange }: PersonPart) {
  const { t, tn, dateTime, relative } = useTranslation()
  const factors = useQuery(personFactorsQuery(person.id))
  const [isOpen, setOpen] = useState(false)
  return (
    <Answer query={factors} rows={2}>
      {({ factors: known, recoveryCodes }) => (
        <Stack gap="sm">
          {known.length === 0 && <Text c="dimmed">{t('users.noFactors')}</Text>}
          {known.map(({ id, kind, name, created, lastUsed }) => (
            <Paper key={id} withBorder p="md">
              <Group gap="sm" wrap="nowrap">
                <Icon name={kind === 'totp' ? 'phone' : 'key'} />
                <div>
                  <Text fw={600}>{isolated(name)}</Text>
                  <Text size="sm" c="dimmed">
                    {[
                      t(kind === 'totp' ? 'security.totp' : 'security.passkey'),
                      t('security.created', { time: dateTime(created) }),
                      lastUsed === undefined
                        ? t('security.neverUsed')
                        : t('security.lastUsed', { time: relative(lastUsed) }),
                    ].join(' · ')}
                  </Text>
                </div>
              </Group>
            </Paper>
          ))}
          {known.length > 0 && (
            <Text size="sm">
              {t('security.recovery')}: {tn('security.codesLeft', recoveryCodes)}
            </Text>
          )}
          {mayChange && known.length > 0 && (
            <Group>
              <Button variant="default" leftSection={<Icon name="trash" size={18} />} onClick={() => setOpen(true)}>
                {t('users.reset')}
              </Button>
            </Group>
          )}
          {isOpen && (
            <ReasonDialog
              title={t('users.reset')}
              text={t('users.resetText', { name: nameOf(person) })}
              isHarmful
              send={(reason) => resetFactors(person.id, reason)}
              done={({ removed }) => (removed === 0 ? t('users.nothingReset') : tn('users.removed', removed))}
              onClose={() => setOpen(false)}
            />
          )}
        </Stack>
      )}
    </Answer>
  )
}
