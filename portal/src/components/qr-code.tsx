import { useTranslation } from '../app/i18n.tsx'

interface QrCodeProps {
  /** The side of the square, in units of the path. */
  readonly size: number
  readonly path: string
}

/** Dark on light in every theme, since cameras need it. */
export function QrCode({ size, path }: QrCodeProps) {
  const { t } = useTranslation()
  return (
    <svg
      className="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={t('qr.label')}
      shapeRendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}
