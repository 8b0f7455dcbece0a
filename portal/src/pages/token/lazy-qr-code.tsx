import { useMemo } from 'react'
import { QrCode } from '../../components/qr-code.tsx'
import { qrPath } from './qr-path.ts'

/** The capacity of a QR code. */
const maxBytes = 2_900

/** Empty for a text that is too long. */
export function LazyQrCode({ text }: { readonly text: string }) {
  const code = useMemo(() => (new TextEncoder().encode(text).length > maxBytes ? undefined : qrPath(text)), [text])
  return code === undefined ? null : <QrCode {...code} />
}
