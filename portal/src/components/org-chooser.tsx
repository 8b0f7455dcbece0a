import { Box, NativeSelect, NavLink } from '@mantine/core'
import { useTranslation } from '../app/i18n.tsx'
import { Icon } from './icon.tsx'
import type { FlatOrg } from './orgs.ts'

interface OrgChooserProps {
  readonly orgs: readonly FlatOrg[]
  /** Empty: all of them. */
  readonly chosen: string
  readonly onChoose: (id: string) => void
  /** Whether the user can choose all of them. */
  readonly withAll: boolean
}

const indent = '\u2003'

/** The tree of organizations; on small screens a select field. */
export function OrgChooser({ orgs, chosen, onChoose, withAll }: OrgChooserProps) {
  const { t } = useTranslation()
  const all = withAll ? [{ id: '', name: t('orgs.all'), description: '', depth: 0 }] : []
  const shown = [...all, ...orgs]
  return (
    <>
      <NativeSelect
        hiddenFrom="sm"
        label={t('orgs.title')}
        value={chosen}
        onChange={(event) => onChoose(event.currentTarget.value)}
        data={shown.map(({ id, name, depth }) => ({ value: id, label: indent.repeat(depth) + name }))}
      />
      <Box component="nav" visibleFrom="sm" aria-label={t('orgs.title')} className="org-tree">
        {shown.map(({ id, name, description, depth }) => (
          <NavLink
            key={id}
            component="button"
            type="button"
            variant="light"
            active={id === chosen}
            aria-current={id === chosen ? 'true' : undefined}
            label={name}
            {...(description === '' ? {} : { description })}
            leftSection={<Icon name={id === '' ? 'list' : 'folder'} size={18} />}
            onClick={() => onChoose(id)}
            style={{ paddingInlineStart: `${0.75 + depth}rem` }}
          />
        ))}
      </Box>
    </>
  )
}
