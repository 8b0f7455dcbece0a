import { Button, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Organization, WorkflowListItem } from '#features/portal/contract/main.ts'
import { orgsQuery } from '../../api/main.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { Icon } from '../../components/icon.tsx'
import { useSay } from '../../components/notices.tsx'
import { OrgChooser } from '../../components/org-chooser.tsx'
import { flatten } from '../../components/orgs.ts'
import { useOwned } from '../../components/own-access.ts'
import { Page } from '../../components/page.tsx'
import { SearchBox } from '../../components/search-box.tsx'
import { Empty, Failure, Loading } from '../../components/states.tsx'
import { VirtualGrid } from '../../components/virtual-grid.tsx'
import { maxLines, newLine, newUuid, rowKey } from './cart.ts'
import { useCart } from './cart-store.ts'
import { WorkflowCard } from './workflow-card.tsx'
import { askAll, useWorkflowRows } from './workflow-rows.ts'

const route = getRouteApi('/request')

/** All workflows that can be requested: by organization, or by words. */
export function RequestPage() {
  const { t } = useTranslation()
  const orgs = useQuery(orgsQuery)
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const search = (next: string): void =>
    void navigate({ search: (old) => ({ ...old, q: next === '' ? undefined : next }), replace: true })
  return (
    <Page title={t('page.request')} intro={t('request.intro')}>
      <SearchBox label={t('request.search')} value={q} onChange={search} />
      <Answer query={orgs}>{(tree) => <Offers tree={tree} />}</Answer>
      <CartBar />
    </Page>
  )
}

function Offers({ tree }: { readonly tree: Organization }) {
  const { t } = useTranslation()
  const { q = '', org: chosen } = route.useSearch()
  const navigate = route.useNavigate()
  const orgs = useMemo(() => flatten(tree, 'showInRequest'), [tree])
  // Too many to read all of them at once start with the first.
  const withAll = orgs.length <= askAll
  const org = orgs.find(({ id }) => id === chosen)?.id ?? (withAll ? '' : (orgs[0]?.id ?? ''))
  const { rows, isPending, error, retry } = useWorkflowRows(orgs, org, q)
  if (orgs.length === 0) return <Empty icon="key" title={t('request.nothing')} text={t('request.nothingText')} />
  const list =
    error !== null && rows.length === 0 ? (
      <Failure error={error} onRetry={retry} />
    ) : isPending && rows.length === 0 ? (
      <Loading height={110} shape="cards" />
    ) : (
      <Rows rows={rows} query={q} />
    )
  if (orgs.length < 2) return list
  return (
    <div className="split">
      <OrgChooser
        orgs={orgs}
        chosen={q === '' ? org : ''}
        withAll={withAll || q !== ''}
        onChoose={(id) => void navigate({ search: id !== '' ? { org: id } : q === '' ? {} : { q } })}
      />
      {list}
    </div>
  )
}

function Rows({ rows, query }: { readonly rows: readonly WorkflowListItem[]; readonly query: string }) {
  const { t } = useTranslation()
  const say = useSay()
  const cart = useCart()
  const ownedOf = useOwned()
  const inCart = new Set(cart.lines.map(({ key }) => key))
  const groups = useMemo(() => [{ key: 'all', items: rows }], [rows])
  const toggle = (row: WorkflowListItem): void => {
    const key = rowKey(row)
    if (inCart.has(key)) cart.remove([key])
    else if (cart.lines.length >= maxLines) say(t('request.cartFull'), 'bad')
    else cart.add(newLine(row, newUuid()))
  }
  if (rows.length === 0) {
    const text = query === '' ? t('request.emptyOrg') : t('home.nothingFound', { query })
    return <Text c="dimmed">{text}</Text>
  }
  return (
    <VirtualGrid
      groups={groups}
      keyOf={rowKey}
      render={(row) => (
        <WorkflowCard row={row} owned={ownedOf(row)} isInCart={inCart.has(rowKey(row))} onToggle={() => toggle(row)} />
      )}
      label={t('request.list')}
      estimate={112}
      minWidth={300}
    />
  )
}

function CartBar() {
  const { t, tn } = useTranslation()
  const { lines } = useCart()
  if (lines.length === 0) return null
  return (
    <Group className="action-bar" justify="space-between" role="region" aria-label={t('request.cart')}>
      <Text fw={600} role="status">
        {tn('request.count', lines.length)}
      </Text>
      <Button
        renderRoot={(props) => <Link to="/request/cart" {...props} />}
        rightSection={<Icon name="arrow" size={18} />}
        leftSection={<Icon name="cart" size={18} />}
      >
        {t('request.checkOut')}
      </Button>
    </Group>
  )
}
