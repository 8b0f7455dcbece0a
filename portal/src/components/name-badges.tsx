import { Badge, Group } from '@mantine/core'
import { isolated } from '../app/isolated.ts'

interface NameBadgesProps {
  readonly names: readonly string[]
  readonly size?: 'lg'
}

/** Names of groups and the like; each once. */
export const NameBadges = ({ names, size }: NameBadgesProps) => (
  <Group gap={6}>
    {[...new Set(names)].map((name) => (
      <Badge key={name} variant="default" tt="none" {...(size === undefined ? {} : { size })}>
        {isolated(name)}
      </Badge>
    ))}
  </Group>
)
