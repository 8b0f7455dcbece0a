import { Button, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { PlanRowView } from '#features/portal/contract/console-reconciliations.ts'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { differenceKinds, reconciliationActions, rowStates } from '#features/reconciliation/contract/plan-words.ts'
import { consolePath } from '../../../api/console.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { isolated } from '../../../app/isolated.ts'
import { actionTexts, kindTexts } from '../../../components/row-texts.ts'
import { Status } from '../../../components/status.tsx'
import { type ConsoleColumn, ConsoleList } from '../console-list.tsx'
import { FilterForm, filled } from '../filter-form.tsx'
import { candidateName, DecideDialog } from './decide-dialog.tsx'
import { rowLooks } from './plan-looks.ts'
import { RowChange } from './row-change.tsx'

export interface RowFilter {
  readonly kind?: string | undefined
  readonly action?: string | undefined
  readonly state?: string | undefined
  readonly login?: string | undefined
}

interface PlanRowsProps {
  readonly id: string
  readonly reconciliation: string
  readonly filter: RowFilter
  readonly onFilter: (filter: RowFilter) => void
}

/** The rows of a plan in plain words. */
export function PlanRows({ id, reconciliation, filter, onFilter }: PlanRowsProps) {
  const { t } = useTranslation()
  const [deciding, setDeciding] = useState<PlanRowView>()
  const columns = useRowColumns(setDeciding)
  const any = { value: '', label: t('console.any') }
  return (
    <>
      <ConsoleList<PlanRowView>
        label={t('plans.rows')}
        path={consolePath(consoleRoutes.listPlanRows, { id })}
        name="rows"
        filter={{ ...filter }}
        empty={t('plans.noRows')}
        columns={columns}
      >
        <FilterForm
          fields={[
            {
              name: 'kind',
              label: t('plans.kind'),
              options: [any, ...differenceKinds.map((value) => ({ value, label: t(kindTexts[value]) }))],
            },
            {
              name: 'action',
              label: t('plans.action'),
              options: [any, ...reconciliationActions.map((value) => ({ value, label: t(actionTexts[value]) }))],
            },
            {
              name: 'state',
              label: t('requests.state'),
              options: [any, ...rowStates.map((value) => ({ value, label: t(rowLooks[value].text) }))],
            },
            { name: 'login', label: t('users.login') },
          ]}
          values={filter}
          onApply={(next) => onFilter(filled(next))}
        />
      </ConsoleList>
      {deciding !== undefined && (
        <DecideDialog reconciliation={reconciliation} row={deciding} onClose={() => setDeciding(undefined)} />
      )}
    </>
  )
}

function useRowColumns(onDecide: (row: PlanRowView) => void): readonly ConsoleColumn<PlanRowView>[] {
  const { t } = useTranslation()
  const { operator } = useConfig()
  return [
    {
      key: 'who',
      name: t('plans.who'),
      width: 10,
      cell: ({ source, target }) => {
        const [first, second] = [source, target].filter((one) => one !== undefined)
        const isOther = second !== undefined && second.login !== first?.login
        return (
          <>
            {first !== undefined && (
              <Text size="sm" title={first.id}>
                {isolated(first.login)}
              </Text>
            )}
            {isOther && (
              <Text size="sm" title={second.id}>
                {t('plans.hasAccount', { login: second.login })}
              </Text>
            )}
          </>
        )
      },
    },
    {
      key: 'what',
      name: t('plans.what'),
      width: 10,
      cell: ({ kind, action }) => (
        <>
          <Text size="sm" fw={600}>
            {t(actionTexts[action])}
          </Text>
          <Text size="sm" c="dimmed">
            {t(kindTexts[kind])}
          </Text>
        </>
      ),
    },
    { key: 'change', name: t('plans.change'), width: 16, cell: (row) => <RowChange row={row} /> },
    {
      key: 'why',
      name: t('plans.why'),
      width: 14,
      cell: (row) => <Why row={row} {...(operator ? { onDecide } : {})} />,
    },
    {
      key: 'state',
      name: t('requests.state'),
      width: 10,
      cell: ({ state, outcome, run }) => (
        <>
          <Status {...rowLooks[state]} text={t(rowLooks[state].text)} />
          {outcome !== undefined && <Text size="sm">{isolated(outcome)}</Text>}
          {run !== undefined && (
            <Link className="text-link" to="/console/runs/$id" params={{ id: run }}>
              {t('plans.run')}
            </Link>
          )}
        </>
      ),
    },
  ]
}

interface WhyProps {
  readonly row: PlanRowView
  /** Absent for administrators who only watch. */
  readonly onDecide?: (row: PlanRowView) => void
}

/** Why a row is a difference, which rule matched, and between whom it can't decide. */
function Why({ row, onDecide }: WhyProps) {
  const { t } = useTranslation()
  const { reason, rule, kind, candidates = [], source, target } = row
  const names = candidates.map((one) => candidateName(one, candidates)).join(', ')
  return (
    <>
      <Text size="sm">{isolated(reason)}</Text>
      {rule !== undefined && (
        <Text size="sm" c="dimmed">
          {t('plans.matchedBy', { rule })}
        </Text>
      )}
      {names !== '' && <Text size="sm">{t('plans.candidates', { names })}</Text>}
      {onDecide !== undefined && kind === 'ambiguous' && names !== '' && (
        <Button
          variant="default"
          size="xs"
          mt={4}
          aria-label={t('links.decideOf', { name: (source ?? target)?.login ?? '' })}
          onClick={() => onDecide(row)}
        >
          {t('links.decide')}
        </Button>
      )}
    </>
  )
}
