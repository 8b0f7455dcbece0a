import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Failure, Loading } from './states.tsx'

interface AnswerProps<T> {
  readonly query: UseQueryResult<T, Error>
  readonly rows?: number
  readonly children: (data: T) => ReactNode
}

/** What was asked for, while it is awaited, when it is there and when it cannot be had. What is there stays. */
export function Answer<T>({ query, rows, children }: AnswerProps<T>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error !== null) return <Failure error={query.error} onRetry={() => void query.refetch()} />
  return <Loading {...(rows === undefined ? {} : { rows })} />
}
