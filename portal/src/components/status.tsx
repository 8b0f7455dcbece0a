import { Group, Text } from '@mantine/core'
import { Icon, type IconName } from './icon.tsx'

export type Tone = 'good' | 'bad' | 'waiting' | 'plain'

interface StatusProps {
  readonly tone: Tone
  readonly icon: IconName
  readonly text: string
}

/** A state by word and icon, with color only as an addition. */
export function Status({ tone, icon, text }: StatusProps) {
  return (
    <Group gap={6} wrap="nowrap" className={`status status-${tone}`}>
      <Icon name={icon} size={16} />
      <Text span size="sm" fw={600}>
        {text}
      </Text>
    </Group>
  )
}
