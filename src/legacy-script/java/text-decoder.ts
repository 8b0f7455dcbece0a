import { decodeText, encodeText } from './bytes.ts'

/** As much of the web's TextDecoder as the gateway's own modules use, for a realm that has none. */
class StrictDecoder {
  /** Throws when the bytes are not UTF-8. */
  decode(bytes: Uint8Array): string {
    const text = decodeText(bytes)
    const again = encodeText(text)
    const isSame = again.length === bytes.length && again.every((byte, i) => byte === bytes[i])
    if (!isSame) throw new TypeError('not UTF-8')
    return text
  }
}

export function provideTextDecoder(): void {
  if ('TextDecoder' in globalThis) return
  Object.defineProperty(globalThis, 'TextDecoder', { value: StrictDecoder })
}
