import { Button, Checkbox, Group, NativeSelect, SegmentedControl, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useId, useMemo, useState } from 'react'
import type { ApprovalList, ApprovalSummary } from '#features/portal/contract/main-requests.ts'
import { approvalsQuery, maxAtOnce } from '../../api/approvals.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { Icon } from '../../components/icon.tsx'
import { matches } from '../../components/matching.ts'
import { useNextPage } from '../../components/next-page.ts'
import { Page } from '../../components/page.tsx'
import { Names, namesIn } from '../../components/person-names.tsx'
import { SearchBox } from '../../components/search-box.tsx'
import { type PagedList, SearchExtent } from '../../components/search-extent.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { VirtualGrid } from '../../components/virtual-grid.tsx'
import { ApprovalRow } from './approval-row.tsx'
import { BulkDialog } from './bulk-dialog.tsx'
import { DecisionHistory } from './decision-history.tsx'
import { openApprovals, workflowsOf } from './open-approvals.ts'

const route = getRouteApi('/approvals')

/** The approvals that wait for the user, or those that the user decided. */
export function ApprovalsPage() {
  const { t } = useTranslation()
  const { show } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <Page title={t('page.approvals')} actions={<DeputiesLink />}>
      <SegmentedControl
        aria-label={t('requests.about')}
        w="fit-content"
        value={show === 'decided' ? 'decided' : 'open'}
        onChange={(value) => void navigate({ search: value === 'decided' ? { show: 'decided' } : {}, replace: true })}
        data={[
          { value: 'open', label: t('approvals.waiting') },
          { value: 'decided', label: t('approvals.decided') },
        ]}
      />
      {show === 'decided' ? <DecisionHistory /> : <OpenApprovals />}
    </Page>
  )
}

/** The oldest first. */
function OpenApprovals() {
  const { t } = useTranslation()
  const list = useInfiniteQuery(approvalsQuery)
  const all = useMemo(() => openApprovals(list.data), [list.data])
  // Stored here, since the list is shorter, or gone, before the results arrive.
  const [deciding, setDeciding] = useState<readonly ApprovalSummary[]>([])
  return (
    <Names of={list.data?.pages} withLogin>
      {deciding.length > 0 && <BulkDialog approvals={deciding} onClose={() => setDeciding([])} />}
      {list.data === undefined ? (
        list.error === null ? (
          <Loading />
        ) : (
          <Failure error={list.error} onRetry={() => void list.refetch()} />
        )
      ) : all.length === 0 ? (
        <Empty icon="check" title={t('approvals.none')} text={t('approvals.noneText')} />
      ) : (
        <Chooser onDecide={setDeciding} all={all} list={list} pages={list.data.pages} />
      )}
      {list.isFetchNextPageError && <Failure error={list.error} onRetry={() => void list.fetchNextPage()} />}
    </Names>
  )
}

function DeputiesLink() {
  const { t } = useTranslation()
  return (
    <Button
      variant="default"
      renderRoot={(props) => <Link to="/approvals/deputies" {...props} />}
      leftSection={<Icon name="people" size={18} />}
    >
      {t('deputies.title')}
    </Button>
  )
}

interface ChooserProps {
  readonly onDecide: (approvals: readonly ApprovalSummary[]) => void
  readonly all: readonly ApprovalSummary[]
  readonly list: PagedList
  readonly pages: readonly ApprovalList[]
}

function Chooser({ all, list, pages, onDecide }: ChooserProps) {
  const { t, tn } = useTranslation()
  const more = useNextPage(list)
  const { q = '', workflow = '' } = route.useSearch()
  const shown = useShown(all, pages)
  const groups = useMemo(() => [{ key: 'all', items: shown }], [shown])
  const { picked, isChosen, choose, isAll, chooseAll } = useChoice(shown)
  const isSearch = q !== '' || workflow !== ''
  return (
    <>
      <Filters all={all} hasMore={list.hasNextPage} />
      <Checkbox
        label={t('approvals.chooseAll')}
        checked={isAll}
        indeterminate={!isAll && picked.length > 0}
        onChange={chooseAll}
      />
      {shown.length === 0 && !list.hasNextPage && (
        <Text c="dimmed" role="status">
          {q === '' ? t('approvals.noneOfKind') : t('home.nothingFound', { query: q })}
        </Text>
      )}
      <VirtualGrid
        groups={groups}
        keyOf={({ approval }) => approval}
        render={(approval) => (
          <ApprovalRow
            approval={approval}
            isChosen={isChosen(approval.approval)}
            onChoose={(chosen) => choose(approval.approval, chosen)}
          />
        )}
        label={t('page.approvals')}
        estimate={84}
        {...(isSearch ? {} : { onEnd: more })}
      />
      {isSearch && <SearchExtent list={list} loaded={all.length} />}
      {picked.length > 0 && (
        <Group className="action-bar" justify="space-between">
          <Text fw={600} role="status">
            {tn('approvals.chosen', picked.length)}
          </Text>
          <Button onClick={() => onDecide(picked)}>{t('approvals.decideChosen')}</Button>
        </Group>
      )}
    </>
  )
}

/** Those that the address searches for. */
function useShown(all: readonly ApprovalSummary[], pages: readonly ApprovalList[]): readonly ApprovalSummary[] {
  const { q = '', workflow = '' } = route.useSearch()
  return useMemo(() => {
    const nameOf = namesIn(pages, true)
    const wordsOf = (one: ApprovalSummary): readonly string[] => [
      ...[one.label, one.wfLabel, one.user, one.displayName, one.reason],
      ...[nameOf(one.requestor), nameOf(one.caller ?? '')],
    ]
    return all.filter((one) => (workflow === '' || one.wfName === workflow) && matches(q, ...wordsOf(one)))
  }, [all, pages, q, workflow])
}

/** Which of the visible approvals are chosen, up to the number that can be decided at once. */
function useChoice(shown: readonly ApprovalSummary[]) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  // Only visible approvals that still exist are decided.
  const picked = shown.filter(({ approval }) => chosen.has(approval)).slice(0, maxAtOnce)
  const isAll = shown.length > 0 && picked.length === Math.min(shown.length, maxAtOnce)
  return {
    picked,
    isAll,
    isChosen: (approval: string): boolean => chosen.has(approval),
    choose: (approval: string, isChosen: boolean): void => {
      const next = new Set(chosen)
      if (isChosen) next.add(approval)
      else next.delete(approval)
      setChosen(next)
    },
    /** All or none. */
    chooseAll: (): void => setChosen(isAll ? new Set() : new Set(shown.slice(0, maxAtOnce).map((one) => one.approval))),
  }
}

interface FiltersProps {
  readonly all: readonly ApprovalSummary[]
  readonly hasMore: boolean
}

function Filters({ all, hasMore }: FiltersProps) {
  const { t, tn } = useTranslation()
  const hint = useId()
  const { q = '', workflow = '' } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <>
      <Group gap="sm" align="end">
        <SearchBox
          label={t('approvals.search')}
          value={q}
          onChange={(next) =>
            void navigate({ search: (old) => ({ ...old, q: next === '' ? undefined : next }), replace: true })
          }
        />
        <NativeSelect
          aria-label={t('approvals.workflow')}
          aria-describedby={hasMore ? hint : undefined}
          value={workflow}
          onChange={({ currentTarget: { value } }) =>
            void navigate({ search: (old) => ({ ...old, workflow: value === '' ? undefined : value }), replace: true })
          }
          data={[
            { value: '', label: t('approvals.allWorkflows') },
            ...[...workflowsOf(all, workflow)].map(([value, label]) => ({ value, label: isolated(label) })),
          ]}
        />
      </Group>
      {hasMore && (
        <Text id={hint} size="sm" c="dimmed">
          {tn('approvals.kindsSoFar', all.length)}
        </Text>
      )}
    </>
  )
}
