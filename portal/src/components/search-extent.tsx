import { Button, Group, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useTranslation } from '../app/i18n.tsx'

/** What is known of a list that comes in pages. */
export interface PagedList {
  readonly data: { readonly pages: readonly unknown[] } | undefined
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly isFetchNextPageError: boolean
  readonly fetchNextPage: () => unknown
}

interface SearchExtentProps {
  readonly list: PagedList
  /** How many were looked through. */
  readonly loaded: number
}

/** So many pages are read without being asked. */
const pagesAtOnce = 5

/**
 * Stands below what was found in a list that comes in pages. The search reads on for a while, says how far it has come, and
 * goes on when it is told to; when all was looked through it has nothing to say.
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
