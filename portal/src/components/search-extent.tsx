import { Button, Group, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTranslation } from '../app/i18n.tsx'

/** The state of a paged list. */
export interface PagedList {
  readonly data: { readonly pages: readonly unknown[] } | undefined
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly isFetchNextPageError: boolean
  readonly fetchNextPage: () => unknown
}

interface SearchExtentProps {
  readonly list: PagedList
  /** The number of searched items. */
  readonly loaded: number
}

/** This many pages are read automatically. */
const pagesAtOnce = 5

/**
 * Shown below the results of a search in a paged list. The search reads some pages, shows its progress, and continues
 * on request; it disappears when all pages were searched.
 */
export function SearchExtent({ list, loaded }: SearchExtentProps) {
  const { t, tn } = useTranslation()
  const [wanted, setWanted] = useState(pagesAtOnce)
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list
  const read = list.data?.pages.length ?? 0
  useEffect(() => {
    if (read < wanted && hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage()
  }, [read, wanted, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage])
  const further = (): void => {
    setWanted(read + pagesAtOnce)
    void fetchNextPage()
  }
  if (!hasNextPage) return null
  return (
    <Group justify="center" gap="sm">
      <Text c="dimmed" role="status">
        {tn('search.soFar', loaded)}
      </Text>
      <Button variant="default" size="xs" loading={isFetchingNextPage} onClick={further}>
        {t('search.further')}
      </Button>
    </Group>
  )
}
