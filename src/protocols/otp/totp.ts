/** Codes of RFC 6238 as every authenticator app computes them: SHA-1, six digits, thirty seconds. */
export interface Totp {
  /** 160 bits, in base 32. */
  newSecret(): string
  /** The content of the QR code for apps. */
  uri(secret: string, issuer: string, account: string): string
  /**
   * The time step of this code: the current one, or an adjacent one, since clocks differ. Undefined if it has none,
   * or one not later than `after`, so that no code is valid twice.
   */
  check(secret: string, code: string, now: Date, after: number): number | undefined
}

const shape = { algorithm: 'SHA1', digits: 6, period: 30 } as const
const window = 1

export async function openTotp(): Promise<Totp> {
  const { Secret, TOTP } = await import('otpauth')
  return {
    newSecret: () => new Secret({ size: 20 }).base32,
    uri: (secret, issuer, account) =>
      new TOTP({ ...shape, issuer, label: account, secret: Secret.fromBase32(secret) }).toString(),
    check(secret, code, now, after) {
      const token = code.replaceAll(/\s/g, '')
      if (!/^\d{6}$/.test(token)) return undefined
      const timestamp = now.getTime()
      const delta = TOTP.validate({ ...shape, token, secret: Secret.fromBase32(secret), timestamp, window })
      if (delta === null) return undefined
      const step = TOTP.counter({ period: shape.period, timestamp }) + delta
      return step > after ? step : undefined
    },
  }
}

/**
 * A QR code as the path of an SVG image whose sides have `size` units, including the quiet zone. Dark modules are
 * filled.
 */
interface QrCode {
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

/** Runs of adjacent dark modules. */
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
