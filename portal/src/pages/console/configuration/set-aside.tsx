import { Alert, Stack, Text } from '@mantine/core'
import type { ConfigurationView, SetAsideGroup } from '#features/portal/contract/console-configuration.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Icon } from '../../../components/icon.tsx'
import './configuration.css'

interface SetAsideProps {
  readonly configuration: Pick<ConfigurationView, 'served' | 'setAside' | 'setAsideBecause'>
}

/** What the running configuration does not serve: the causes, what to do about each, and what depends on it. */
export function SetAside({ configuration: { served, setAside, setAsideBecause } }: SetAsideProps) {
  const { tn } = useTranslation()
  if (setAside === 0) return null
  return (
    <Alert color="red" variant="outline" icon={<Icon name="warning" />} title={tn('configuration.aside', setAside)}>
      <Stack gap="sm">
        <Text size="sm">{tn('configuration.served', served)}</Text>
        <ul className="problem-list">
          {setAsideBecause.map((group) => (
            <li key={`${group.object} ${group.place} ${group.message}`}>
              <Cause group={group} />
            </li>
          ))}
        </ul>
      </Stack>
    </Alert>
  )
}

function Cause({ group: { object, place, message, objects, objectCount } }: { readonly group: SetAsideGroup }) {
  const { t, tn } = useTranslation()
  const names = objects.map(({ kind, name, file }) =>
    isolated(name === undefined ? `${kind} ${file}` : `${kind} "${name}"`),
  )
  const more = objectCount - objects.length
  return (
    <Stack gap={2} className="set-aside-reason">
      <Text size="sm" fw={600}>
        {isolated(object)}
      </Text>
      <Text size="sm">{isolated(message)}</Text>
      <Text size="sm">
        {place === undefined ? t('configuration.asideCreate', { object }) : t('configuration.asideCorrect', { place })}
      </Text>
      <Text size="sm" c="dimmed">
        {t('configuration.asideObjects', { objects: names.join(', ') })}
        {more > 0 && ` ${tn('configuration.asideMore', more)}`}
      </Text>
    </Stack>
  )
}
