import { Button, Group, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { DecidedApprovalView } from '#features/portal/contract/main-requests.ts'
import { decisionsQuery } from '../../api/approvals.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { useNextPage } from '../../components/next-page.ts'
import { Names, useNames } from '../../components/person-names.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { Status } from '../../components/status.tsx'
import { VirtualGrid } from '../../components/virtual-grid.tsx'
import { decisionLooks } from './decided.tsx'

/** What the user decided, the latest first. */
export function DecisionHistory() {
  const { t } = useTranslation()
  const list = useInfiniteQuery(decisionsQuery)
  const more = useNextPage(list)
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage, error } = list
  const groups = useMemo(
    () => [{ key: 'all', items: list.data?.pages.flatMap(({ decisions }) => decisions) ?? [] }],
    [list.data],
  )
  if (list.data === undefined) {
    return error === null ? <Loading /> : <Failure error={error} onRetry={() => void list.refetch()} />
  }
  if (groups[0]?.items.length === 0) {
    return <Empty icon="check" title={t('approvals.noneDecided')} text={t('approvals.noneDecidedText')} />
  }
  return (
    <Names of={list.data.pages} withLogin>
      <VirtualGrid
        groups={groups}
        keyOf={({ approval }) => approval}
        render={(approval) => <DecisionRow approval={approval} />}
        label={t('approvals.decided')}
        estimate={84}
        onEnd={more}
      />
      {isFetchNextPageError && error !== null && <Failure error={error} />}
      {hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {t('action.more')}
          </Button>
        </Group>
      )}
    </Names>
  )
}

function DecisionRow({ approval }: { readonly approval: DecidedApprovalView }) {
  const { t, relative, dateTime } = useTranslation()
  const nameOf = useNames()
  const { label, user, displayName, wfLabel, status, decision } = approval
  const { text, tone, icon } = decisionLooks[status]
  return (
    <div className="card">
      <Link to="/approvals/$id" params={{ id: approval.approval }} className="card-link">
        <Group justify="space-between" gap="xs" w="100%" wrap="nowrap">
          <div>
            <Text fw={600}>{isolated(label)}</Text>
            <Text size="sm" c="dimmed">
              {isolated(wfLabel)} · {isolated(nameOf(user, displayName))} ·{' '}
              <time title={dateTime(decision.at)}>{relative(decision.at)}</time>
              {decision.onBehalfOf !== undefined &&
                ` · ${t('approval.inPlaceOf', { who: nameOf(decision.onBehalfOf) })}`}
            </Text>
            {decision.comment !== undefined && (
              <Text size="sm" className="clamp">
                {isolated(decision.comment)}
              </Text>
            )}
          </div>
          <Status tone={tone} icon={icon} text={t(text)} />
        </Group>
      </Link>
    </div>
  )
}
