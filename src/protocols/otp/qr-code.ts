/** A QR code as the path of an SVG image whose sides have `size` units, quiet zone included. Dark modules are filled. */
export interface QrCode {
  readonly size: number
  readonly path: string
}

/** RangeError for a text that is too long. */
export async function qrCode(text: string): Promise<QrCode> {
  const { encode } = await import('uqr')
  const { size, data } = encode(text, { ecc: 'M', border: 4 })
  const path = data.flatMap((row, y) => runs(row).map(([x, length]) => `M${x} ${y}h${length}v1h-${length}z`)).join('')
  return { size, path }
}

/** Where dark modules stand side by side. */
function runs(row: readonly boolean[]): [start: number, length: number][] {
  const found: [number, number][] = []
  for (const [x, dark] of row.entries()) {
    const last = found.at(-1)
    if (!dark) continue
    if (last !== undefined && last[0] + last[1] === x) last[1]++
    else found.push([x, 1])
  }
  return found
}
