import { Button, Group, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { ReportParameter } from '#features/reports/contract/reports.ts'
import type { ReportValues } from '../../api/reports.ts'
import { useTranslation } from '../../app/i18n.tsx'
import type { MessageKey } from '../../app/messages.ts'
import { Icon } from '../../components/icon.tsx'
import { PersonPicker } from '../../components/person-picker.tsx'

interface ParameterFormProps {
  readonly parameters: readonly ReportParameter[]
  readonly initial: ReportValues
  readonly isRunning: boolean
  readonly onRun: (values: ReportValues) => void
}

const dates: readonly { readonly name: 'beginDate' | 'endDate'; readonly label: MessageKey }[] = [
  { name: 'beginDate', label: 'reports.beginDate' },
  { name: 'endDate', label: 'reports.endDate' },
]

/** The parameters of a report, before it runs. */
export function ParameterForm({ parameters, initial, isRunning, onRun }: ParameterFormProps) {
  const { t } = useTranslation()
  const [values, setValues] = useState<ReportValues>(initial)
  const [isAsked, setAsked] = useState(false)
  const missing = parameters.filter((name) => (values[name] ?? '') === '')
  const isTurned =
    values.beginDate !== undefined &&
    values.endDate !== undefined &&
    values.endDate !== '' &&
    values.endDate < values.beginDate
  const errorOf = (name: ReportParameter): string | undefined => {
    if (isAsked && missing.includes(name)) return t('register.required')
    return name === 'endDate' && isTurned ? t('reports.turned') : undefined
  }
  const run = (event: FormEvent): void => {
    event.preventDefault()
    setAsked(true)
    if (missing.length === 0 && !isTurned) onRun(values)
  }
  return (
    <form onSubmit={run} noValidate>
      <Group align="start">
        {dates
          .filter(({ name }) => parameters.includes(name))
          .map(({ name, label }) => (
            <TextInput
              key={name}
              type="date"
              label={t(label)}
              required
              max="9999-12-31"
              value={values[name] ?? ''}
              onChange={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
              error={errorOf(name)}
            />
          ))}
        {parameters.includes('userKey') && (
          <div className="report-person">
            <PersonPicker
              label={t('reports.person')}
              single
              free
              value={values.userKey === undefined || values.userKey === '' ? [] : [values.userKey]}
              onChange={([userKey = '']) => setValues({ ...values, userKey })}
              error={errorOf('userKey')}
            />
          </div>
        )}
        <Button type="submit" loading={isRunning} className="report-run" leftSection={<Icon name="chart" size={18} />}>
          {t('reports.run')}
        </Button>
      </Group>
    </form>
  )
}
