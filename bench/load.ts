import { connect, type Socket } from 'node:net'

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** The bytes of the n-th request: complete, HTTP/1.1, keep-alive. */
  request(n: number): string
  readonly expectedStatus: number
  /** No request is sent once this is true. */
  until?(): boolean
}

export interface LoadResult {
  readonly count: number
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

/**
 * Requests over plain sockets, one at a time per connection, because an HTTP client library costs as much as the server
 * it measures. Rejects at the first answer with another status.
 */
export async function runLoad(load: Load): Promise<LoadResult> {
  const times: number[] = []
  let sent = 0
  const started = performance.now()
  const end = started + load.seconds * 1000
  const next = (): string | undefined =>
    performance.now() < end && load.until?.() !== true ? load.request(sent++) : undefined
  const done = (ms: number): void => void times.push(ms)
  await Promise.all(Array.from({ length: load.connections }, () => drive(load, next, done)))
  const seconds = (performance.now() - started) / 1000
  times.sort((a, b) => a - b)
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
  return { count: times.length, perSecond: times.length / seconds, p50: at(0.5), p99: at(0.99) }
}

function drive(load: Load, next: () => string | undefined, done: (ms: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(load.port, '127.0.0.1')
    socket.setNoDelay(true)
    let buffer = ''
    let began = 0
    const send = (): void => {
      const bytes = next()
      if (bytes === undefined) {
        socket.end()
        resolve()
        return
      }
      began = performance.now()
      socket.write(bytes, 'latin1')
    }
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      buffer += chunk.toString('latin1')
      const head = buffer.indexOf('\r\n\r\n')
      if (head < 0) return
      const headers = buffer.slice(0, head)
      const chunked = /transfer-encoding: chunked/i.test(headers)
      // One answer at a time: the last chunk ends the buffer.
      if (chunked && !buffer.endsWith('0\r\n\r\n')) return
      const length = chunked ? buffer.length - head - 4 : Number(/content-length: (\d+)/i.exec(headers)?.[1] ?? 0)
      if (buffer.length < head + 4 + length) return
      const status = Number(buffer.slice(9, 12))
      if (status !== load.expectedStatus) {
        reject(new Error(`status ${status}: ${buffer.slice(0, 600)}`))
        socket.destroy()
        return
      }
      buffer = buffer.slice(head + 4 + length)
      done(performance.now() - began)
      send()
    })
  })
}
