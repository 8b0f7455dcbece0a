import { expect, test } from 'vitest'
import { openTotp, qrCode } from '#protocols/otp/totp.ts'

/** RFC 6238, appendix B: "12345678901234567890" in base 32, and the last six digits of its eight. */
const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const at = (seconds: number): Date => new Date(seconds * 1000)

test('codes match RFC 6238', async () => {
  const totp = await openTotp()
  expect(totp.check(secret, '287082', at(59), 0)).toBe(1)
  expect(totp.check(secret, '081804', at(1_111_111_109), 0)).toBe(37_037_036)
  expect(totp.check(secret, ' 081 804 ', at(1_111_111_109), 0)).toBe(37_037_036)
})

test('a code is valid in its own thirty seconds and the adjacent ones, and no longer', async () => {
  const totp = await openTotp()
  const accepted = [-31, -30, 0, 29, 59, 60, 90].map(
    (later) => totp.check(secret, '081804', at(1_111_111_080 + later), 0) !== undefined,
  )
  expect(accepted).toEqual([false, true, true, true, true, false, false])
})

test('no code is valid twice, nor one from before the latest', async () => {
  const totp = await openTotp()
  const step = 37_037_036
  expect(totp.check(secret, '081804', at(1_111_111_109), step - 1)).toBe(step)
  expect(totp.check(secret, '081804', at(1_111_111_109), step)).toBeUndefined()
  expect(totp.check(secret, '081804', at(1_111_111_109), step + 1)).toBeUndefined()
})

test.each(['', '81804', '0818040', '08180４', '-81804', '081804\0', '1e5000'])('"%s" is not a code', async (code) => {
  expect((await openTotp()).check(secret, code, at(1_111_111_109), 0)).toBeUndefined()
})

test('secrets have 160 bits and differ; the URL for apps contains them, and is escaped', async () => {
  const totp = await openTotp()
  const [one, other] = [totp.newSecret(), totp.newSecret()]
  expect(one).toMatch(/^[A-Z2-7]{32}$/)
  expect(one).not.toBe(other)
  const uri = new URL(totp.uri(one, 'The Firm & Co', 'a?issuer=evil&secret=x'))
  expect(uri.protocol).toBe('otpauth:')
  expect([uri.searchParams.getAll('secret'), uri.searchParams.getAll('issuer')]).toEqual([[one], ['The Firm & Co']])
})

test('a QR code is one path of dark modules with a border', async () => {
  const { size, path } = await qrCode('otpauth://totp/x?secret=y')
  expect(size).toBeGreaterThan(21)
  expect(path).toMatch(/^(?:M\d+ \d+h\d+v1h-\d+z)+$/)
  // The upper left finder pattern, after the border of four.
  expect(path.startsWith('M4 4h7v1h-7z')).toBe(true)
})
