import { Anchor, Button, Group, Paper, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import type { CatalogItem } from '#features/portal/contract/main-catalog.ts'
import { catalogItemQuery, workflowsQuery } from '../../api/workflows.ts'
import { type Translation, useTranslation } from '../../app/i18n.tsx'
import { Answer } from '../../components/answer.tsx'
import { type Fact, Facts } from '../../components/facts.tsx'
import { Icon } from '../../components/icon.tsx'
import { Markdown } from '../../components/markdown.tsx'
import { useSay } from '../../components/notices.tsx'
import { useOwned } from '../../components/own-access.ts'
import { OwnedStatus } from '../../components/owned-status.tsx'
import { Page } from '../../components/page.tsx'
import { StarButton } from '../../components/star-button.tsx'
import { AccessEndField } from './access-end-field.tsx'
import { maxLines, newLine, newUuid, rowKey } from './cart.ts'
import { useCart } from './cart-store.ts'

const route = getRouteApi('/request/item')

/** One item of the catalog: what it is, who decides, for how long, and whether the user has it. */
export function ItemPage() {
  const { t } = useTranslation()
  const { name = '', label } = route.useSearch()
  const query = useQuery(catalogItemQuery(name))
  return (
    <Page
      title={label ?? query.data?.label ?? t('page.request')}
      actions={
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/request" {...props} />}
          leftSection={<Icon name="back" size={18} />}
        >
          {t('page.request')}
        </Button>
      }
    >
      <Answer query={query}>{(item) => <Item item={item} label={label ?? item.label} />}</Answer>
    </Page>
  )
}

function Item({ item, label }: { readonly item: CatalogItem; readonly label: string }) {
  const translation = useTranslation()
  const { t } = translation
  const rows = useQuery(workflowsQuery(item.org))
  const ownedOf = useOwned()
  return (
    <Answer query={rows}>
      {(all) => {
        const row = all.find((one) => one.name === item.name && one.label === label)
        const owned = ownedOf(row ?? item)
        const { pending } = owned
        return (
          <Stack>
            <OwnedStatus owned={owned} />
            {pending !== undefined && (
              <Anchor renderRoot={(props) => <Link to="/requests/$id" params={{ id: pending }} {...props} />}>
                {t('request.toPending')}
              </Anchor>
            )}
            <Paper withBorder p="md">
              <Markdown text={row?.description ?? item.description} />
              <Facts facts={factsOf(item, translation)} />
            </Paper>
            {row === undefined ? t('cart.gone') : <RequestForm row={row} current={owned.expires} />}
          </Stack>
        )
      }}
    </Answer>
  )
}

function factsOf(item: CatalogItem, { t, tn }: Translation): readonly Fact[] {
  const { owner, approverGroups, decisionMillis, accessEnds } = item
  const longest = accessEnds?.longestSeconds
  return [
    ...(owner === undefined ? [] : [{ name: t('item.owner'), value: owner }]),
    ...(approverGroups.length === 0 ? [] : [{ name: t('item.approvers'), value: approverGroups.join(', ') }]),
    ...(decisionMillis === undefined ? [] : [{ name: t('item.usualTime'), value: lengthText(decisionMillis, tn) }]),
    ...(longest === undefined ? [] : [{ name: t('item.longest'), value: lengthText(longest * 1000, tn) }]),
  ]
}

const units = [
  ['duration.days', 86_400_000],
  ['duration.hours', 3_600_000],
  ['duration.minutes', 60_000],
] as const

/** In the largest unit that fits; a part of a minute is a minute. */
function lengthText(millis: number, tn: Translation['tn']): string {
  const [unit, size] = units.find(([, length]) => millis >= length) ?? units[2]
  return tn(unit, Math.max(1, Math.round(millis / size)))
}

interface RequestFormProps {
  readonly row: WorkflowListItem
  /** When the access ends that the user has. */
  readonly current: string | undefined
}

function RequestForm({ row, current }: RequestFormProps) {
  const { t } = useTranslation()
  const say = useSay()
  const cart = useCart()
  const navigate = useNavigate()
  const [ends, setEnds] = useState('')
  const key = rowKey(row)
  const isInCart = cart.lines.some((line) => line.key === key)
  const add = (): void => {
    if (!isInCart && cart.lines.length >= maxLines) {
      say(t('request.cartFull'), 'bad')
      return
    }
    if (isInCart) cart.change(key, ends === '' ? {} : { ends })
    else cart.add({ ...newLine(row, newUuid()), ends })
    void navigate({ to: '/request/cart' })
  }
  return (
    <Stack>
      {row.accessEnds !== undefined && (
        <AccessEndField offer={row.accessEnds} value={ends} onChange={setEnds} error={undefined} current={current} />
      )}
      <Group>
        <Button leftSection={<Icon name="cart" size={18} />} onClick={add}>
          {t('item.request')}
        </Button>
        <StarButton kind="workflow" name={row.name} label={row.label} />
      </Group>
    </Stack>
  )
}
