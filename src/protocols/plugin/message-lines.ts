import type { Readable } from 'node:stream'

/** Calls `onLine` for each line of the stream, and `onTooLong` once, for good, when a line passes the limit. */
export function readLines(
  stream: Readable,
  limit: number,
  onLine: (line: string) => void,
  onTooLong: () => void,
): void {
  let parts: string[] = []
  let length = 0
  let over = false
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    if (over) return
    let from = 0
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      parts.push(chunk.slice(from, end))
      const line = parts.join('')
      parts = []
      length = 0
      from = end + 1
      onLine(line)
    }
    parts.push(chunk.slice(from))
    length += chunk.length - from
    if (length > limit) {
      over = true
      parts = []
      onTooLong()
    }
  })
}
