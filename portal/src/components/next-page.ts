import { useCallback } from 'react'

interface Pages {
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly isFetchNextPageError: boolean
  readonly fetchNextPage: () => unknown
}

/** Asks for the next page when its time has come. One that was refused is asked for again by people alone. */
export function useNextPage({ hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage }: Pages) {
  return useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage])
}
