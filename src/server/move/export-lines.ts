import { createHash } from 'node:crypto'
import { longestLine } from './export-format.ts'

export interface ExportLine {
  readonly number: number
  readonly text: string
  /** Over all lines before this one. */
  readonly hashBefore: () => string
}

/**
 * The lines of an export. Throws an Error for a line that is too long, without reading all of it, for bytes that are no
 * UTF-8, and for a last line without an end, which was cut off.
 */
export async function* readLines(input: AsyncIterable<Buffer>, name: string): AsyncGenerator<ExportLine> {
  const sum = createHash('sha256')
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let parts: Buffer[] = []
  let size = 0
  let number = 0
  const add = (part: Buffer): void => {
    size += part.length
    if (size > longestLine)
      throw new Error(`${name}: line ${number + 1} is longer than ${longestLine} bytes; it is not an export`)
    parts.push(part)
  }
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end + 1))
      start = end + 1
      const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts)
      number++
      yield {
        number,
        text: decode(decoder, bytes, `${name}: line ${number}`),
        hashBefore: () => sum.copy().digest('base64url'),
      }
      sum.update(bytes)
      parts = []
      size = 0
    }
    if (start < chunk.length) add(chunk.subarray(start))
  }
  if (size > 0) throw new Error(`${name} was cut off in line ${number + 1}`)
}

const newline = 0x0a

function decode(decoder: TextDecoder, bytes: Buffer, place: string): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new Error(`${place} is not UTF-8 text: the file was changed, or is not an export`)
  }
}
