import { SimpleGrid, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { MarkedItem, PortalLink } from '#features/portal/contract/main.ts'
import { marksQuery } from '../../api/marks.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Badge } from './badge.tsx'
import { WorkflowLink } from './workflow-link.tsx'

const maxFavorites = 24
const maxRecent = 8

/** Favorites first, then recently used items that are not favorites. */
export function Marked({ links }: { readonly links: readonly PortalLink[] }) {
  const { t } = useTranslation()
  const { data } = useQuery(marksQuery)
  if (data === undefined) return null
  const isFavorite = ({ kind, name }: MarkedItem): boolean =>
    data.favorites.some((one) => one.kind === kind && one.name === name)
  const recent = data.recent.filter((item) => !isFavorite(item)).slice(0, maxRecent)
  return (
    <>
      <Section id="favorites" title={t('home.favorites')} items={data.favorites.slice(0, maxFavorites)} links={links} />
      <Section id="recent" title={t('home.recent')} items={recent} links={links} />
    </>
  )
}

interface SectionProps {
  readonly id: string
  readonly title: string
  readonly items: readonly MarkedItem[]
  readonly links: readonly PortalLink[]
}

function Section({ id, title, items, links }: SectionProps) {
  const shown = items.flatMap((item) => {
    if (item.kind === 'workflow') return [<WorkflowLink key={`w ${item.name}`} name={item.name} label={item.label} />]
    const link = links.find(({ name }) => name === item.name)
    return link === undefined ? [] : [<Badge key={`u ${item.name}`} link={link} />]
  })
  if (shown.length === 0) return null
  return (
    <section aria-labelledby={id}>
      <Title order={2} size="h5" id={id} mb="xs">
        {title}
      </Title>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 4 }} spacing={12}>
        {shown}
      </SimpleGrid>
    </section>
  )
}
