import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface SyslogReceiver {
  readonly host: string
  readonly port: number
  /** Undefined for plain TCP. `authority` is PEM text; the system's own when absent. */
  readonly tls: { readonly authority: string | undefined; readonly serverName: string | undefined } | undefined
}

/** Connects; over TLS, the receiver's certificate is verified. Rejects when the signal fires. */
export async function connect({ host, port, tls }: SyslogReceiver, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const socket =
    tls === undefined
      ? connectPlain({ host, port })
      : connectTls({
          host,
          port,
          minVersion: 'TLSv1.2',
          ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
          ...(tls.authority === undefined ? {} : { ca: tls.authority }),
        })
  try {
    await once(socket, tls === undefined ? 'connect' : 'secureConnect', { signal })
  } catch (error) {
    socket.on('error', () => {})
    socket.destroy()
    throw error
  }
  // Reads and drops what the receiver sends: otherwise the end of the stream would not be seen.
  socket.setKeepAlive(true, 10_000).resume()
  return socket
}

/**
 * Sends the text and ends our side. Resolves when the receiver ends its side after that: it has then read everything,
 * since a stream's end is read last. A receiver that dies before resets the connection, or ends it too early.
 */
export function sendAndEnd(socket: Socket, text: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let isSent = false
    const finish = (error?: Error): void => {
      signal.removeEventListener('abort', stop)
      socket.destroy()
      if (error === undefined) resolve()
      else reject(error)
    }
    const stop = (): void => finish(new Error('the receiver did not read everything in time'))
    const early = (): void => finish(new Error('the receiver closed the connection before it had read everything'))
    signal.addEventListener('abort', stop)
    socket.on('error', finish)
    socket.once('end', () => (isSent ? finish() : early()))
    socket.once('close', early)
    if (signal.aborted) stop()
    else if (socket.destroyed || socket.readableEnded) early()
    else
      socket.end(text, () => {
        isSent = true
      })
  })
}
