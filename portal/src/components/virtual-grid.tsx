import { Badge, Group, Title } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useState } from 'react'
import { columnsFor, type GridRow, type ItemGroup, rowsOf } from './grid-rows.ts'

interface VirtualGridProps<T> {
  readonly groups: readonly ItemGroup<T>[]
  readonly keyOf: (item: T) => string
  readonly render: (item: T) => ReactNode
  readonly label: string
  /** The estimated height of a row. */
  readonly estimate: number
  /** One column if absent. */
  readonly minWidth?: number
  /** Called near the end, to fetch more. */
  readonly onEnd?: () => void
}

const gap = 12
/** Up to this many are all in the document, so that the browser finds them; of more only those around the window. */
const showAll = 60
const overscan = 6

/** A list or grid of any length; only the rows near the window are in the document. */
export function VirtualGrid<T>({ groups, keyOf, render, label, estimate, minWidth, onEnd }: VirtualGridProps<T>) {
  const { ref, width } = useElementSize<HTMLDivElement>()
  const [top, setTop] = useState(0)
  const columns = columnsFor(width, minWidth, gap)
  const rows = useMemo(() => rowsOf(groups, columns), [groups, columns])
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: (index) => (rows[index]?.kind === 'heading' ? 40 : estimate) + gap,
    overscan: rows.length <= showAll ? rows.length : overscan,
    scrollMargin: top,
    getItemKey: (index) => rows[index]?.key ?? index,
  })

  // Content above may have grown.
  useLayoutEffect(() => {
    const box = ref.current?.getBoundingClientRect()
    if (box !== undefined) setTop(Math.round(box.top + window.scrollY))
  })

  const shown = virtualizer.getVirtualItems()
  const isNearEnd = (shown.at(-1)?.index ?? 0) >= rows.length - 1 - overscan
  useEffect(() => {
    if (isNearEnd && rows.length > 0) onEnd?.()
  }, [isNearEnd, rows.length, onEnd])

  return (
    // biome-ignore lint/a11y/useSemanticElements: rows lie between the list and its items, where elements of lists allow none
    <div ref={ref} role="list" aria-label={label} className="virtual" style={{ height: virtualizer.getTotalSize() }}>
      {width > 0 &&
        shown.map(({ index, key, start }) => {
          const row = rows[index]
          return (
            <div
              key={key}
              ref={virtualizer.measureElement}
              data-index={index}
              role="none"
              className="virtual-row"
              style={{
                transform: `translateY(${start - top}px)`,
                gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
              }}
            >
              {row !== undefined && <Row row={row} keyOf={keyOf} render={render} />}
            </div>
          )
        })}
    </div>
  )
}

function Row<T>({ row, keyOf, render }: Pick<VirtualGridProps<T>, 'keyOf' | 'render'> & { readonly row: GridRow<T> }) {
  if (row.kind === 'heading') {
    return (
      <Group role="listitem" gap="xs" className="virtual-heading">
        <Title order={2} size="h5">
          {row.heading}
        </Title>
        <Badge variant="default" size="sm">
          {row.count}
        </Badge>
      </Group>
    )
  }
  return row.items.map((item) => (
    // biome-ignore lint/a11y/useSemanticElements: as above
    <div key={keyOf(item)} role="listitem" className="virtual-item">
      {render(item)}
    </div>
  ))
}
