import { UnstyledButton } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useRef } from 'react'
import { Icon } from './icon.tsx'
import './virtual-table.css'

export interface TableColumn {
  readonly key: string
  readonly name: string
  /** In rem. */
  readonly width: number
  readonly alignEnd?: boolean
}

interface VirtualTableProps {
  readonly label: string
  readonly columns: readonly TableColumn[]
  readonly count: number
  readonly cell: (row: number, column: number) => ReactNode
  readonly sorting?: { readonly column: number; readonly descending: boolean } | undefined
  /** Not sortable if absent. */
  readonly onSort?: (column: number) => void
  /** Called near the end, to fetch more. */
  readonly onEnd?: () => void
}

const rowHeight = 38
const overscan = 12

/** A table of any length; only the visible rows are in the document. */
export function VirtualTable({ label, columns, count, cell, sorting, onSort, onEnd }: VirtualTableProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan,
    onChange: ({ range }) => {
      if (range !== null && range.endIndex >= count - overscan) onEnd?.()
    },
  })
  const shown = virtualizer.getVirtualItems()
  const above = shown[0]?.start ?? 0
  const below = virtualizer.getTotalSize() - (shown.at(-1)?.end ?? 0)
  const width = columns.reduce((sum, column) => sum + column.width, 0)
  return (
    // A group rather than a region: the section around it may have the same name.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it
    // biome-ignore lint/a11y/useSemanticElements: its rows are not fields
    <div ref={scroller} role="group" className="table-scroll" tabIndex={0} aria-label={label}>
      <table className="table" aria-label={label} aria-rowcount={count + 1} style={{ minWidth: `${width}rem` }}>
        <colgroup>
          {columns.map((column) => (
            <col key={column.key} style={{ width: `${(100 * column.width) / width}%` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ key, name }, i) => (
              <th key={key} scope="col" {...(onSort === undefined ? {} : { 'aria-sort': sortOf(sorting, i) })}>
                {onSort === undefined ? (
                  name
                ) : (
                  <UnstyledButton className="table-sort" onClick={() => onSort(i)}>
                    {name}
                    <SortMark order={sortOf(sorting, i)} />
                  </UnstyledButton>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <Space height={above} />
        <tbody>
          {shown.map(({ index, key }) => (
            <tr key={key} aria-rowindex={index + 2} data-index={index} ref={virtualizer.measureElement}>
              {columns.map((column, i) => (
                <td key={column.key} className={column.alignEnd === true ? 'table-end' : undefined}>
                  {cell(index, i)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <Space height={below} />
      </table>
    </div>
  )
}

/** Replaces the rows that are not in the document. */
function Space({ height }: { readonly height: number }) {
  if (height <= 0) return null
  return (
    <tbody aria-hidden="true" className="table-space">
      <tr>
        <td style={{ height }} />
      </tr>
    </tbody>
  )
}

const sortOf = (sorting: VirtualTableProps['sorting'], column: number): 'ascending' | 'descending' | 'none' => {
  if (sorting?.column !== column) return 'none'
  return sorting.descending ? 'descending' : 'ascending'
}

function SortMark({ order }: { readonly order: ReturnType<typeof sortOf> }) {
  return (
    <span className={`table-mark table-mark-${order}`}>
      <Icon name="chevron" size={14} />
    </span>
  )
}
