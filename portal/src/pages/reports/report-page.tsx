import { Button, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReportInfo, ReportParameter } from '#features/reports/contract/reports.ts'
import { type ReportValues, reportQuery } from '../../api/reports.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/page.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { useKnownReports } from './known-reports.ts'
import { ParameterForm } from './parameter-form.tsx'
import { ReportView } from './report-view.tsx'
import './reports.css'

const route = getRouteApi('/reports/$name')

/** One report. Its parameters are in the address, so that it can be shared. */
export function ReportPage() {
  const { t } = useTranslation()
  const { name } = route.useParams()
  const { groups, error, refetch } = useKnownReports()
  const report = groups?.flatMap(({ reports }) => reports).find((one) => one.name === name)
  const back = (
    <Button
      variant="default"
      leftSection={<Icon name="back" size={18} />}
      renderRoot={(props) => <Link to="/reports" {...props} />}
    >
      {t('reports.all')}
    </Button>
  )
  return (
    <Page title={report?.label ?? name} {...(report === undefined ? {} : { intro: report.description })} actions={back}>
      {report !== undefined ? (
        <Report key={name} report={report} />
      ) : groups !== undefined ? (
        <Empty icon="chart" title={t('reports.unknown')} text={t('failure.notFound')} />
      ) : error === null ? (
        <Loading />
      ) : (
        <Failure error={error} onRetry={refetch} />
      )}
    </Page>
  )
}

function Report({ report: { name, parameters } }: { readonly report: ReportInfo }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const values = valuesOf(parameters, search)
  const isReady = parameters.every((parameter) => values[parameter] !== undefined)
  const result = useQuery({ ...reportQuery(name, values), enabled: isReady })
  const run = (chosen: ReportValues): void => {
    const isSame = parameters.every((parameter) => chosen[parameter] === values[parameter])
    if (isSame) void result.refetch()
    else void navigate({ search: chosen })
  }
  return (
    <Stack>
      <ParameterForm parameters={parameters} initial={values} isRunning={isReady && result.isFetching} onRun={run} />
      {isReady && (
        <Answer query={result} rows={8}>
          {(found) => <ReportView result={found} values={values} />}
        </Answer>
      )}
    </Stack>
  )
}

/** Only the parameters that the report declares. */
function valuesOf(
  parameters: readonly ReportParameter[],
  search: { readonly [name in ReportParameter]?: string | undefined },
): ReportValues {
  const given = parameters.flatMap((name) => (search[name] === undefined ? [] : [[name, search[name]] as const]))
  return Object.fromEntries(given)
}
