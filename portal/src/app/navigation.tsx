import { Badge, NavLink } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useLocation } from '@tanstack/react-router'
import { approvalsQuery } from '../api/approvals.ts'
import { Icon } from '../components/icon.tsx'
import { useLive } from '../components/live.ts'
import { useConfig } from './config.tsx'
import { consolePages } from './console-pages.ts'
import { useTranslation } from './i18n.tsx'
import { shownPages } from './pages.ts'
import { settings } from './settings.ts'

/** Whether the address belongs to the page; the front page only matches exactly. */
const isAt = (pathname: string, to: string): boolean =>
  to === '/' ? pathname === '/' || pathname === '' : pathname === to || pathname.startsWith(`${to}/`)

export function Navigation() {
  const { t } = useTranslation()
  const config = useConfig()
  const { pathname } = useLocation()
  return (
    <>
      {shownPages(config, settings.apis)
        .filter(({ place }) => place === undefined)
        .map(({ id, to, title, icon }) => (
          <NavLink
            key={id}
            renderRoot={(props) => <Link to={to} activeOptions={{ exact: true }} {...props} />}
            variant="light"
            active={isAt(pathname, to)}
            label={t(title)}
            leftSection={<Icon name={icon} />}
            rightSection={id === 'approvals' ? <OpenApprovals /> : null}
          />
        ))}
      {config.administrator && !config.hidePages.includes('console') && <Console pathname={pathname} />}
    </>
  )
}

/** The pages of administrators, which open below one entry. */
function Console({ pathname }: { readonly pathname: string }) {
  const { t } = useTranslation()
  if (consolePages.length === 0) return null
  return (
    <NavLink
      component="button"
      label={t('page.console')}
      leftSection={<Icon name="shield" />}
      defaultOpened={isAt(pathname, '/console')}
      childrenOffset="md"
    >
      {consolePages.map(({ to, title, icon }) => (
        <NavLink
          key={to}
          renderRoot={(props) => <Link to={to} {...props} />}
          variant="light"
          active={isAt(pathname, to)}
          label={t(title)}
          leftSection={<Icon name={icon} size={18} />}
        />
      ))}
    </NavLink>
  )
}

function OpenApprovals() {
  const { tn, number } = useTranslation()
  const { data } = useInfiniteQuery({ ...approvalsQuery, refetchInterval: useLive(60_000) })
  const count = data?.pages.reduce((sum, { approvals }) => sum + approvals.length, 0) ?? 0
  if (count === 0) return null
  const more = data?.pages.at(-1)?.next === undefined ? '' : '+'
  return (
    <Badge size="sm" variant="filled" circle={count < 10} aria-label={tn('attention.approvals', count)}>
      {number(count) + more}
    </Badge>
  )
}
