import { Table, Text } from '@mantine/core'
import type { AdminStep } from '#features/portal/contract/main-admin.ts'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { Status } from '../../../components/status.tsx'
import { outcomeLooks, outcomeOf } from '../workflows/task-marks.ts'

/** The executed steps of a run, in order. */
export function RunSteps({ timeline }: { readonly timeline: readonly AdminStep[] }) {
  const { t, dateTime, number } = useTranslation()
  if (timeline.length === 0) return <Text c="dimmed">{t('runs.noSteps')}</Text>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys have to reach it
    <section className="task-scroll" tabIndex={0} aria-label={t('runs.steps')}>
      <Table aria-label={t('runs.steps')} miw={600}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t('runs.task')}</Table.Th>
            <Table.Th scope="col">{t('runs.outcome')}</Table.Th>
            <Table.Th scope="col">{t('runs.attempt')}</Table.Th>
            <Table.Th scope="col">{t('dashboard.time')}</Table.Th>
            <Table.Th scope="col">{t('dashboard.millis')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {timeline.map((step) => {
            const { id, task, taskType, label, error, attempt, started, ended } = step
            const { tone, icon, text } = outcomeLooks[outcomeOf(step)]
            return (
              <Table.Tr key={id}>
                <Table.Td>
                  <Text size="sm">{isolated(label ?? taskType)}</Text>
                  <Text size="xs" c="dimmed">
                    <code>{task}</code>
                  </Text>
                </Table.Td>
                <Table.Td>
                  <Status tone={tone} icon={icon} text={t(text)} />
                  {error !== undefined && <Text size="sm">{isolated(error)}</Text>}
                </Table.Td>
                <Table.Td>{number(attempt)}</Table.Td>
                <Table.Td>{dateTime(started)}</Table.Td>
                <Table.Td>{number(Date.parse(ended) - Date.parse(started))}</Table.Td>
              </Table.Tr>
            )
          })}
        </Table.Tbody>
      </Table>
    </section>
  )
}
