import { Menu } from '@mantine/core'
import { Icon, type IconName } from './icon.tsx'

interface MenuChoiceProps {
  readonly label: string
  readonly icon?: IconName
  readonly isChosen: boolean
  readonly onChoose: () => void
  /** The language of the label, if it differs from the page's. */
  readonly lang?: string
}

/** One of several choices in a menu, of which one is chosen. */
export function MenuChoice({ label, icon, isChosen, onChoose, lang }: MenuChoiceProps) {
  return (
    <Menu.Item
      renderRoot={(props) => (
        <button {...props} type="button" lang={lang} role="menuitemradio" aria-checked={isChosen} />
      )}
      leftSection={icon === undefined ? null : <Icon name={icon} size={16} />}
      rightSection={isChosen ? <Icon name="check" size={16} /> : null}
      onClick={onChoose}
    >
      {label}
    </Menu.Item>
  )
}
