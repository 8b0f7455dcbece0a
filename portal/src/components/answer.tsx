import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Failure, Loading, type LoadingShape } from './states.tsx'

interface AnswerProps<T> {
  readonly query: UseQueryResult<T, Error>
  readonly rows?: number
  /** What the data looks like, for its placeholder. */
  readonly shape?: LoadingShape
  readonly children: (data: T) => ReactNode
}

/** The result of a query: its loading, data and error states. Loaded data stays visible. */
export function Answer<T>({ query, rows, shape, children }: AnswerProps<T>) {
  if (query.data !== undefined) return children(query.data)
  if (query.error !== null) return <Failure error={query.error} onRetry={() => void query.refetch()} />
  return <Loading {...(rows === undefined ? {} : { rows })} {...(shape === undefined ? {} : { shape })} />
}
