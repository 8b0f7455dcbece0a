import { Button, Group, Stack, Text } from '@mantine/core'
import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { exportAddress, type ListFilter, listQuery } from '../../api/console.ts'
import { download } from '../../api/download.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Icon } from '../../components/icon.tsx'
import { useLive } from '../../components/live.ts'
import { useNextPage } from '../../components/next-page.ts'
import { Names } from '../../components/person-names.tsx'
import { Failure, Loading } from '../../components/states.tsx'
import { type TableColumn, VirtualTable } from '../../components/virtual-table.tsx'

export interface ConsoleColumn<R> extends TableColumn {
  readonly cell: (row: R) => ReactNode
}

interface ConsoleListProps<R> {
  readonly label: string
  /** The list of the console's API, such as `people`. */
  readonly path: string
  /** The property of the answer that holds the rows; the path if absent. */
  readonly name?: string
  readonly filter: ListFilter
  readonly columns: readonly ConsoleColumn<R>[]
  /** Shown where nothing was found. */
  readonly empty: string
  /** The controls that set the filter. */
  readonly children?: ReactNode
  /** How often it is read again. Never if absent. */
  readonly everyMillis?: number
}

const never = 24 * 3_600_000

/** A list of the console: filters, export, and rows that are fetched as they come into view. */
export function ConsoleList<R>(props: ConsoleListProps<R>) {
  const { label, path, name = path, filter, columns, empty, children, everyMillis } = props
  const { t } = useTranslation()
  const live = useLive(everyMillis ?? never)
  const list = useInfiniteQuery({
    ...listQuery<R>(path, name, filter),
    refetchInterval: everyMillis === undefined ? false : live,
  })
  const exported = useMutation({ mutationFn: () => download(exportAddress(path, filter), `${name}.csv`) })
  const more = useNextPage(list)
  const rows = list.data?.pages.flatMap((page) => page.rows)
  return (
    <Stack gap="sm">
      <Group gap="sm" align="end" justify="space-between">
        <Group gap="sm" align="end">
          {children}
        </Group>
        <Button
          variant="default"
          leftSection={<Icon name="download" size={18} />}
          loading={exported.isPending}
          disabled={rows === undefined || rows.length === 0}
          onClick={() => exported.mutate()}
        >
          {t('console.export')}
        </Button>
      </Group>
      {exported.error !== null && <Failure error={exported.error} onRetry={() => exported.mutate()} />}
      {rows === undefined ? (
        list.error === null ? (
          <Loading rows={8} height={38} />
        ) : (
          <Failure error={list.error} onRetry={() => void list.refetch()} />
        )
      ) : rows.length === 0 ? (
        <Text c="dimmed">{empty}</Text>
      ) : (
        <Names of={list.data?.pages} withLogin>
          <VirtualTable
            label={label}
            columns={columns}
            count={rows.length}
            cell={(row, column) => {
              const shown = rows[row]
              return shown === undefined ? '' : columns[column]?.cell(shown)
            }}
            onEnd={more}
          />
        </Names>
      )}
      {list.isFetchNextPageError && <Failure error={list.error} onRetry={() => void list.fetchNextPage()} />}
    </Stack>
  )
}
