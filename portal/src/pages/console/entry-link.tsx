import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { isolated } from '../../app/isolated.ts'

interface EntryLinkProps {
  readonly to: '/console/people/$id' | '/console/groups/$id'
  readonly id: string
  readonly name: string
}

/** A link to the page of a user or group. */
export const EntryLink = ({ to, id, name }: EntryLinkProps) => (
  <Anchor inherit renderRoot={(props) => <Link to={to} params={{ id }} {...props} />}>
    {isolated(name)}
  </Anchor>
)
