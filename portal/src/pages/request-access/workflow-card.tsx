import { Anchor, Badge, Button, Group, Stack, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Icon } from '../../components/icon.tsx'
import { markdownText } from '../../components/markdown-blocks.ts'
import type { Owned } from '../../components/own-access.ts'
import { OwnedStatus } from '../../components/owned-status.tsx'
import { StarButton } from '../../components/star-button.tsx'

interface WorkflowCardProps {
  readonly row: WorkflowListItem
  readonly owned: Owned
  readonly isInCart: boolean
  readonly onToggle: () => void
}

/** A workflow that can be requested. */
export function WorkflowCard({ row, owned, isInCart, onToggle }: WorkflowCardProps) {
  const { t } = useTranslation()
  const { name, label, description, filterAnnotations } = row
  return (
    <Stack className="card" gap={6} justify="space-between">
      <Group gap={4} wrap="nowrap" align="start" justify="space-between">
        <div>
          <Text component="h2" fw={600} m={0}>
            <Anchor c="inherit" renderRoot={(props) => <Link to="/request/item" search={{ name, label }} {...props} />}>
              {isolated(label)}
            </Anchor>
          </Text>
          <Text size="sm" c="dimmed" className="clamp">
            {isolated(markdownText(description))}
          </Text>
          <OwnedStatus owned={owned} />
        </div>
        <StarButton kind="workflow" name={name} label={label} />
      </Group>
      <Group justify="space-between" gap="xs">
        <Group gap={4}>
          {Object.entries(filterAnnotations).map(([annotation, value]) => (
            <Badge key={annotation} variant="default" tt="none">
              {annotation}: {value}
            </Badge>
          ))}
        </Group>
        <Button
          size="xs"
          variant={isInCart ? 'light' : 'filled'}
          aria-label={
            isInCart
              ? `${t('request.inCart')} – ${t('request.removeNamed', { label })}`
              : t('request.addNamed', { label })
          }
          leftSection={<Icon name={isInCart ? 'check' : 'plus'} size={16} />}
          onClick={onToggle}
        >
          {t(isInCart ? 'request.inCart' : 'request.add')}
        </Button>
      </Group>
    </Stack>
  )
}
