import { Alert, Button, Group, NativeSelect, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type { ReportResult } from '#features/reports/contract/reports.ts'
import { downloadReport, type ReportFile, type ReportValues } from '../../api/reports.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { localeOf } from '../../app/language.ts'
import { Icon } from '../../components/icon.tsx'
import { LazyBars } from '../../components/lazy-bars.tsx'
import { useSay } from '../../components/notices.tsx'
import { SearchBox } from '../../components/search-box.tsx'
import { Empty, useFailureText } from '../../components/states.tsx'
import { VirtualTable } from '../../components/virtual-table.tsx'
import { chartChoices, chartPoints } from './report-chart.ts'
import { type Column, filtered, type Row, type Sorting, sorted, type Table, tableOf } from './report-table.ts'

interface ReportViewProps {
  readonly result: ReportResult
  readonly values: ReportValues
}

/** The result of a report: as a table, as a chart if possible, and as a file. */
export function ReportView({ result, values }: ReportViewProps) {
  const { t, tn, language } = useTranslation()
  const table = useMemo(() => tableOf(result), [result])
  const [sorting, setSorting] = useState<Sorting>()
  const [text, setText] = useState('')
  const rows = useMemo(() => {
    const wanted = filtered(table.rows, text)
    return sorting === undefined ? wanted : sorted({ ...table, rows: wanted }, sorting, language)
  }, [table, sorting, text, language])
  const sort = (column: number): void => setSorting(nextSorting(sorting, column))
  return (
    <Stack>
      <Group justify="space-between">
        <Text role="status">{tn('reports.rows', rows.length)}</Text>
        <Group gap="xs">
          <FileButton name={result.name} values={values} format="csv" />
          <FileButton name={result.name} values={values} format="xlsx" />
        </Group>
      </Group>
      {result.truncated === true && (
        <Alert color="yellow" variant="outline" icon={<Icon name="warning" />}>
          {t('reports.truncated')}
        </Alert>
      )}
      {table.rows.length === 0 ? (
        <Empty icon="chart" title={t('reports.empty')} text={t('reports.emptyText')} />
      ) : (
        <>
          <Picture table={table} rows={rows} />
          <SearchBox label={t('reports.filter')} value={text} onChange={setText} />
          <ReportRows
            label={result.label ?? result.name}
            columns={table.columns}
            rows={rows}
            sorting={sorting}
            onSort={sort}
          />
        </>
      )}
    </Stack>
  )
}

/** Ascending, descending, and the report's own order. */
function nextSorting(before: Sorting | undefined, column: number): Sorting | undefined {
  if (before?.column !== column) return { column, descending: false }
  return before.descending ? undefined : { column, descending: true }
}

interface ReportRowsProps {
  readonly label: string
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
  readonly sorting: Sorting | undefined
  readonly onSort: (column: number) => void
}

function ReportRows({ label, columns, rows, sorting, onSort }: ReportRowsProps) {
  const { dateTime } = useTranslation()
  return (
    <VirtualTable
      label={label}
      columns={columns.map(({ key, name, kind, width }) => ({ key, name, width, alignEnd: kind === 'number' }))}
      count={rows.length}
      cell={(row, column) => {
        const value = rows[row]?.[column] ?? ''
        return columns[column]?.kind === 'dateTime' && value !== '' ? dateTime(value) : value
      }}
      sorting={sorting}
      onSort={onSort}
    />
  )
}

function Picture({ table, rows }: { readonly table: Table; readonly rows: readonly Row[] }) {
  const { t, language } = useTranslation()
  const choices = useMemo(() => chartChoices(table), [table])
  const [chosen, setChosen] = useState('')
  const choice = choices.find(({ column }) => String(column) === chosen)
  const points = useMemo(() => {
    const days = new Intl.DateTimeFormat(localeOf(language, navigator.languages), {
      dateStyle: 'medium',
      timeZone: 'UTC',
    })
    return choice === undefined ? [] : chartPoints(rows, choice, (at) => days.format(at))
  }, [choice, rows, language])
  if (choices.length === 0) return null
  const label = choice === undefined ? '' : t('reports.rowsBy', { column: choice.name })
  return (
    <Stack gap="sm">
      <NativeSelect
        label={t('reports.picture')}
        className="search-box"
        value={chosen}
        onChange={(event) => setChosen(event.currentTarget.value)}
        data={[
          { value: '', label: t('reports.noPicture') },
          ...choices.map(({ column, name }) => ({
            value: String(column),
            label: t('reports.rowsBy', { column: name }),
          })),
        ]}
      />
      {choice !== undefined && (
        <LazyBars
          label={label}
          data={points.map((point) => ({ ...point }))}
          series={[{ name: 'count', label: t('reports.count'), color: 'primary.6' }]}
          lying={choice.kind === 'by-value'}
        />
      )}
    </Stack>
  )
}

interface FileButtonProps {
  readonly name: string
  readonly values: ReportValues
  readonly format: ReportFile
}

function FileButton({ name, values, format }: FileButtonProps) {
  const { t } = useTranslation()
  const say = useSay()
  const failureText = useFailureText()
  const fetching = useMutation({
    mutationFn: () => downloadReport(name, values, format),
    onError: (error) => say(failureText(error), 'bad'),
  })
  return (
    <Button
      variant="default"
      loading={fetching.isPending}
      leftSection={<Icon name="download" size={18} />}
      onClick={() => fetching.mutate()}
    >
      {t('reports.export', { format: format.toUpperCase() })}
    </Button>
  )
}
