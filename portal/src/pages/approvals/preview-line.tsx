import { Group, Stack, Text, VisuallyHidden } from '@mantine/core'
import type { PreviewAttribute, PreviewEntry, PreviewStep } from '#sdk/contract/preview.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import type { MessageKey } from '../../app/messages.ts'
import { type Fact, Facts } from '../../components/facts.tsx'
import { Icon, type IconName } from '../../components/icon.tsx'
import { NameBadges } from '../../components/name-badges.tsx'
import { Preline } from '../../components/preline.tsx'
import { objectText } from './object-text.ts'

const entryTexts: Readonly<Record<PreviewEntry['kind'], Readonly<Record<PreviewEntry['action'], MessageKey>>>> = {
  user: { create: 'preview.accountCreate', change: 'preview.accountChange', delete: 'preview.accountDelete' },
  group: { create: 'preview.groupCreate', change: 'preview.groupChange', delete: 'preview.groupDelete' },
}

const objectTexts: Readonly<Record<Extract<PreviewStep, { kind: 'object' }>['action'], MessageKey>> = {
  create: 'preview.objectCreate',
  change: 'preview.objectChange',
  delete: 'preview.objectDelete',
}

const icons: Readonly<Record<PreviewStep['kind'], IconName>> = {
  user: 'person',
  group: 'people',
  object: 'server',
  end: 'clock',
  mail: 'mail',
  approval: 'check',
  wait: 'clock',
  workflow: 'arrow',
  unforeseen: 'warning',
}

/** One previewed change. */
export function PreviewLine({ step }: { readonly step: PreviewStep }) {
  const text = useStepText(step)
  return (
    <Group gap="xs" wrap="nowrap" align="start">
      <Icon name={icons[step.kind]} size={18} />
      <Stack gap={4} className="preview-text">
        <Text>{text}</Text>
        {(step.kind === 'user' || step.kind === 'group') && <Entry entry={step} />}
        {step.kind === 'object' && (
          <Text size="xs" c="dimmed">
            {isolated(step.name)}
          </Text>
        )}
        {step.kind === 'unforeseen' && step.reason !== undefined && (
          <Text size="sm" c="dimmed">
            {isolated(step.reason)}
          </Text>
        )}
      </Stack>
    </Group>
  )
}

function useStepText(step: PreviewStep): string {
  const { t, dateTime } = useTranslation()
  switch (step.kind) {
    case 'user':
    case 'group':
      return t(entryTexts[step.kind][step.action], { name: step.name, target: step.target })
    case 'object':
      return t(objectTexts[step.action], { name: objectText(step), target: step.target })
    case 'end': {
      const { name, target, expires } = step
      return t(step.of === 'user' ? 'preview.accountEnds' : 'preview.accessEnds', {
        name,
        target,
        when: dateTime(expires),
      })
    }
    case 'mail':
      return t('preview.mail', { recipient: step.recipient, subject: step.subject })
    case 'approval':
      return t('preview.approval', { label: step.label })
    case 'wait':
      return t('preview.waits', { when: dateTime(step.until) })
    case 'workflow':
      return t(step.apart ? 'preview.apart' : 'preview.called', { name: step.name })
    case 'unforeseen':
      return t('preview.task', { task: step.task })
  }
}

function Entry({ entry }: { readonly entry: PreviewEntry }) {
  const { t } = useTranslation()
  const { newName, attributes, joins, leaves, cut } = entry
  const facts: readonly Fact[] = [
    ...(newName === undefined ? [] : [{ name: t('preview.newName'), value: newName }]),
    ...attributes.map((attribute) => ({
      key: `attribute ${attribute.name}`,
      name: attribute.name,
      value: <Difference attribute={attribute} />,
    })),
    ...(joins.length === 0 ? [] : [{ name: t('preview.joins'), value: <NameBadges names={joins} /> }]),
    ...(leaves.length === 0 ? [] : [{ name: t('preview.leaves'), value: <NameBadges names={leaves} /> }]),
  ]
  return (
    <>
      {facts.length > 0 && <Facts facts={facts} />}
      {cut && (
        <Text size="sm" c="dimmed">
          {t('preview.cut')}
        </Text>
      )}
    </>
  )
}

/** The old and the new value; only the latter for a new attribute. */
function Difference({ attribute }: { readonly attribute: PreviewAttribute }) {
  const { t } = useTranslation()
  const { secret, before, after } = attribute
  if (secret) return <Text c="dimmed">{t('preview.secret')}</Text>
  const wanted = after.length === 0 ? t('preview.nothing') : after.join(', ')
  if (before.length === 0) return <Preline text={wanted} />
  return (
    <span className="preline">
      <VisuallyHidden>{t('preview.before')} </VisuallyHidden>
      <del>{isolated(before.join(', '))}</del>
      <span aria-hidden="true"> → </span>
      <VisuallyHidden> {t('preview.after')} </VisuallyHidden>
      <ins>{isolated(wanted)}</ins>
    </span>
  )
}
