import { Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { matches } from '../../components/matching.ts'
import { SearchBox } from '../../components/search-box.tsx'
import type { OperationGroup } from './api-document.ts'

interface OperationListProps {
  readonly name: string
  readonly groups: readonly OperationGroup[]
  /** The id of the shown operation. */
  readonly chosen: string | undefined
  readonly query: string
  readonly onSearch: (query: string) => void
}

export function OperationList({ name, groups, chosen, query, onSearch }: OperationListProps) {
  const { t, tn } = useTranslation()
  const found = groups
    .map((group) => ({
      ...group,
      operations: group.operations.filter(({ id, method, path, summary }) =>
        matches(query.trim(), id, `${method} ${path}`, summary, group.name),
      ),
    }))
    .filter(({ operations }) => operations.length > 0)
  const count = found.reduce((sum, { operations }) => sum + operations.length, 0)
  return (
    <nav aria-label={t('apis.operations')} className="api-operations">
      <Stack gap="sm">
        <SearchBox label={t('apis.search')} value={query} onChange={onSearch} />
        <Text size="sm" c="dimmed" role="status">
          {tn('apis.found', count)}
        </Text>
        {found.map(({ name: group, operations }) => (
          <div key={group}>
            {group !== '' && (
              <Title order={2} size="h6" lang="en">
                {isolated(group)}
              </Title>
            )}
            <ul className="bare-list">
              {operations.map(({ id, method, path, summary }) => (
                <li key={id}>
                  <Link
                    to="/apis/$name"
                    params={{ name }}
                    search={{ operation: id, ...(query === '' ? {} : { q: query }) }}
                    className="api-operation"
                    aria-current={id === chosen ? 'page' : undefined}
                  >
                    <span className="api-call">
                      <b>{method}</b> {isolated(path)}
                    </span>
                    <Text component="span" size="sm" lang="en">
                      {isolated(summary)}
                    </Text>
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </Stack>
    </nav>
  )
}
