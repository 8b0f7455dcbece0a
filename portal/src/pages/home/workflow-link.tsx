import { Group, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { isolated } from '../../app/isolated.ts'
import { Icon } from '../../components/icon.tsx'
import { markdownText } from '../../components/markdown-blocks.ts'
import { StarButton } from '../../components/star-button.tsx'

interface WorkflowLinkProps {
  readonly name: string
  readonly label: string
  readonly description?: string
}

/** A workflow, linked to the page where the user requests it. */
export function WorkflowLink({ name, label, description }: WorkflowLinkProps) {
  return (
    <Group className="card" gap={4} wrap="nowrap">
      <Link className="card-link" to="/request" search={{ q: label }}>
        <span className="badge-letter" aria-hidden="true">
          <Icon name="key" />
        </span>
        <span>
          <Text span fw={600} className="clamp">
            {isolated(label)}
          </Text>
          {description !== undefined && description !== '' && (
            <Text span size="sm" c="dimmed" className="clamp">
              {isolated(markdownText(description))}
            </Text>
          )}
        </span>
      </Link>
      <StarButton kind="workflow" name={name} label={label} />
    </Group>
  )
}
