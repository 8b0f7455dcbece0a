import { lazy, Suspense } from 'react'
import { part } from '../app/part.ts'
import type { BarsProps } from './bars.tsx'
import { Loading } from './states.tsx'

const Bars = lazy(part(async () => ({ default: (await import('./bars.tsx')).Bars })))

export function LazyBars(props: BarsProps) {
  return (
    <Suspense fallback={<Loading rows={1} height={280} />}>
      <Bars {...props} />
    </Suspense>
  )
}
