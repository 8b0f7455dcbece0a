import { Group, Text, VisuallyHidden } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import type { PortalLink } from '#features/portal/contract/main.ts'
import { noteUse } from '../../api/marks.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { isolated } from '../../app/isolated.ts'
import { iconAddress, safeAddress } from '../../components/safe-address.ts'
import { StarButton } from '../../components/star-button.tsx'

/** A link of the portal, with its icon. */
export function Badge({ link }: { readonly link: PortalLink }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const icon = iconAddress(link.icon)
  const href = safeAddress(link.url, window.location.href)
  return (
    <Group className="card" gap={4} wrap="nowrap">
      <a
        className="card-link"
        href={href}
        target="_blank"
        rel="noopener noreferrer"
        onClick={() => noteUse(client, { kind: 'url', name: link.name })}
      >
        {icon === undefined ? (
          <span className="badge-letter" aria-hidden="true">
            {link.label.slice(0, 1).toUpperCase()}
          </span>
        ) : (
          <img className="badge-icon" src={icon} alt="" loading="lazy" />
        )}
        <Text span fw={600} className="clamp">
          {isolated(link.label)}
          <VisuallyHidden> {t('home.newTab')}</VisuallyHidden>
        </Text>
      </a>
      <StarButton kind="url" name={link.name} label={link.label} />
    </Group>
  )
}
