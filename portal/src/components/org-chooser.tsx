import { ActionIcon, Box, Button, NativeSelect, NavLink } from '@mantine/core'
import { useLocalStorage } from '@mantine/hooks'
import { useTranslation } from '../app/i18n.tsx'
import { isolated } from '../app/isolated.ts'
import { Icon } from './icon.tsx'
import { type FlatOrg, visibleOrgs } from './orgs.ts'

interface OrgChooserProps {
  readonly orgs: readonly FlatOrg[]
  /** Empty: all of them. */
  readonly chosen: string
  readonly onChoose: (id: string) => void
  /** Whether the user can choose all of them. */
  readonly withAll: boolean
}

const indent = '\u2003'
/** The first view is already the stored one. */
const atOnce = { getInitialValueInEffect: false }
/** The most closed entries that are stored. */
const maxClosed = 500

/** The tree of organizations, which remembers what the user closed; on small screens a select field. */
export function OrgChooser({ orgs, chosen, onChoose, withAll }: OrgChooserProps) {
  const { t } = useTranslation()
  const [isOpen, setOpen] = useLocalStorage({ key: 'gatehouse.orgs.open', defaultValue: true, ...atOnce })
  const all = withAll ? [{ id: '', name: t('orgs.all'), description: '', depth: 0 }] : []
  return (
    <>
      <NativeSelect
        hiddenFrom="sm"
        label={t('orgs.title')}
        value={chosen}
        onChange={(event) => onChoose(event.currentTarget.value)}
        data={[...all, ...orgs].map(({ id, name, depth }) => ({
          value: id,
          label: indent.repeat(depth) + isolated(name),
        }))}
      />
      <Box component="nav" visibleFrom="sm" aria-label={t('orgs.title')} className="org-tree" mod={{ closed: !isOpen }}>
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          aria-expanded={isOpen}
          leftSection={<Icon name={isOpen ? 'close' : 'folder'} size={16} />}
          onClick={() => setOpen(!isOpen)}
        >
          {t(isOpen ? 'orgs.hide' : 'orgs.show')}
        </Button>
        {isOpen && <Tree orgs={orgs} chosen={chosen} onChoose={onChoose} withAll={withAll} />}
      </Box>
    </>
  )
}

function Tree({ orgs, chosen, onChoose, withAll }: OrgChooserProps) {
  const { t } = useTranslation()
  const [stored, setStored] = useLocalStorage<readonly string[]>({
    key: 'gatehouse.orgs.closed',
    defaultValue: [],
    ...atOnce,
  })
  const closed = new Set(Array.isArray(stored) ? stored : [])
  const toggle = (id: string): void => {
    const next = new Set(closed)
    if (!next.delete(id)) next.add(id)
    setStored([...next].slice(-maxClosed))
  }
  const entry = (id: string, name: string, description: string) => (
    <NavLink
      component="button"
      type="button"
      variant="light"
      active={id === chosen}
      aria-current={id === chosen ? 'true' : undefined}
      label={isolated(name)}
      {...(description === '' ? {} : { description: isolated(description) })}
      leftSection={<Icon name={id === '' ? 'list' : 'folder'} size={18} />}
      onClick={() => onChoose(id)}
    />
  )
  const shown = visibleOrgs(orgs, closed, chosen)
  const hasParents = shown.some(({ isParent }) => isParent)
  return (
    <ul>
      {withAll && (
        <li className="org-entry">
          {hasParents && <span className="org-leaf" />}
          {entry('', t('orgs.all'), '')}
        </li>
      )}
      {shown.map(({ id, name, description, depth, isParent, isClosed }) => (
        <li key={id} className="org-entry" style={{ paddingInlineStart: `${depth}rem` }}>
          {isParent ? (
            <ActionIcon
              className="org-toggle"
              variant="subtle"
              color="gray"
              size={24}
              aria-label={t('orgs.below', { name })}
              aria-expanded={!isClosed}
              onClick={() => toggle(id)}
            >
              <Icon name="chevron" size={16} />
            </ActionIcon>
          ) : (
            hasParents && <span className="org-leaf" />
          )}
          {entry(id, name, description)}
        </li>
      ))}
    </ul>
  )
}
