import { Group, Stack, Text, VisuallyHidden } from '@mantine/core'
import type { ForeseenAttribute, ForeseenEntry, ForeseenStep } from '#contract/main-requests.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import { type Fact, Facts } from '../../components/facts.tsx'
import { Icon, type IconName } from '../../components/icon.tsx'
import { NameBadges } from '../../components/name-badges.tsx'
import { Preline } from '../../components/preline.tsx'

const entryTexts: Readonly<Record<ForeseenEntry['kind'], Readonly<Record<ForeseenEntry['action'], MessageKey>>>> = {
  user: { create: 'foreseen.accountCreate', change: 'foreseen.accountChange', delete: 'foreseen.accountDelete' },
  group: { create: 'foreseen.groupCreate', change: 'foreseen.groupChange', delete: 'foreseen.groupDelete' },
}

const icons: Readonly<Record<ForeseenStep['kind'], IconName>> = {
  user: 'person',
  group: 'people',
  end: 'clock',
  mail: 'mail',
  approval: 'check',
  wait: 'clock',
  workflow: 'arrow',
  unforeseen: 'warning',
}

/** One thing that would happen. */
export function ForeseenLine({ step }: { readonly step: ForeseenStep }) {
  const text = useStepText(step)
  return (
    <Group gap="xs" wrap="nowrap" align="start">
      <Icon name={icons[step.kind]} size={18} />
      <Stack gap={4} className="foreseen-text">
        <Text>{text}</Text>
        {(step.kind === 'user' || step.kind === 'group') && <Entry entry={step} />}
        {step.kind === 'unforeseen' && step.reason !== undefined && (
          <Text size="sm" c="dimmed">
            {isolated(step.reason)}
          </Text>
        )}
      </Stack>
    </Group>
  )
}

function useStepText(step: ForeseenStep): string {
  const { t, moment } = useTranslation()
  switch (step.kind) {
    case 'user':
    case 'group':
      return t(entryTexts[step.kind][step.action], { name: step.name, target: step.target })
    case 'end': {
      const { name, target, expires } = step
      return t(step.of === 'user' ? 'foreseen.accountEnds' : 'foreseen.accessEnds', {
        name,
        target,
        when: moment(expires),
      })
    }
    case 'mail':
      return t('foreseen.mail', { recipient: step.recipient, subject: step.subject })
    case 'approval':
      return t('foreseen.approval', { label: step.label })
    case 'wait':
      return t('foreseen.waits', { when: moment(step.until) })
    case 'workflow':
      return t(step.apart ? 'foreseen.apart' : 'foreseen.called', { name: step.name })
    case 'unforeseen':
      return t('foreseen.task', { task: step.task })
  }
}

function Entry({ entry }: { readonly entry: ForeseenEntry }) {
  const { t } = useTranslation()
  const { newName, attributes, joins, leaves, cut } = entry
  const facts: readonly Fact[] = [
    ...(newName === undefined ? [] : [{ name: t('foreseen.newName'), value: newName }]),
    ...attributes.map((attribute) => ({
      key: `attribute ${attribute.name}`,
      name: attribute.name,
      value: <Difference attribute={attribute} />,
    })),
    ...(joins.length === 0 ? [] : [{ name: t('foreseen.joins'), value: <NameBadges names={joins} /> }]),
    ...(leaves.length === 0 ? [] : [{ name: t('foreseen.leaves'), value: <NameBadges names={leaves} /> }]),
  ]
  return (
    <>
      {facts.length > 0 && <Facts facts={facts} />}
      {cut && (
        <Text size="sm" c="dimmed">
          {t('foreseen.cut')}
        </Text>
      )}
    </>
  )
}

/** From what it is to what it would be; of something new only the latter. */
function Difference({ attribute }: { readonly attribute: ForeseenAttribute }) {
  const { t } = useTranslation()
  const { secret, before, after } = attribute
  if (secret) return <Text c="dimmed">{t('foreseen.secret')}</Text>
  const wanted = after.length === 0 ? t('foreseen.nothing') : after.join(', ')
  if (before.length === 0) return <Preline text={wanted} />
  return (
    <span className="preline">
      <VisuallyHidden>{t('foreseen.before')} </VisuallyHidden>
      <del>{isolated(before.join(', '))}</del>
      <span aria-hidden="true"> → </span>
      <VisuallyHidden> {t('foreseen.after')} </VisuallyHidden>
      <ins>{isolated(wanted)}</ins>
    </span>
  )
}
