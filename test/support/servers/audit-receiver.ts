import { appendFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import type { Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import process from 'node:process'
import { createServer as createTlsServer } from 'node:tls'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'

/** The JSON text of each message, without the header of RFC 5424; the rest is the beginning of a frame. */
export function readFrames(bytes: Buffer): { readonly messages: string[]; readonly rest: Buffer } {
  const messages: string[] = []
  let rest = bytes
  for (;;) {
    const space = rest.indexOf(0x20)
    const length = space < 0 ? Number.NaN : Number(rest.subarray(0, space).toString('ascii'))
    if (!(rest.length >= space + 1 + length)) return { messages, rest }
    const message = rest.subarray(space + 1, space + 1 + length).toString('utf8')
    const [, text] = /^<\d{1,3}>1 \S+ \S+ \S+ \d+ audit - \ufeff(.*)$/s.exec(message) ?? []
    if (text === undefined) throw new Error(`not a message of RFC 5424: ${message.slice(0, 200)}`)
    messages.push(text)
    rest = rest.subarray(space + 1 + length)
  }
}

/** Accepts syslog messages; `store` gets each complete one. */
export function syslogServer(security: 'tls' | 'none', store: (text: string) => void): Server {
  const take = (socket: Socket): void => {
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      const read = readFrames(Buffer.concat([rest, chunk]))
      rest = read.rest
      for (const text of read.messages) store(text)
    })
    socket.on('error', () => {})
  }
  return security === 'tls' ? createTlsServer(serverIdentity, take) : createServer(take)
}

/** Accepts batches of JSON Lines; `store` gets each line before the answer. */
export function batchServer(store: (text: string) => void): Server {
  return createHttpsServer(serverIdentity, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.headers.authorization !== 'Bearer receiver-token') return void response.writeHead(401).end()
      for (const line of Buffer.concat(chunks).toString('utf8').trimEnd().split('\n')) store(line)
      response.writeHead(204).end()
    })
  })
}

const serverIdentity = { key: testServerKey, cert: testServerCertificate }

/** A process of its own, which can be killed: `audit-receiver.ts syslog|https PORT FILE`. */
if (import.meta.main) {
  const [, , kind, port, file = ''] = process.argv
  const store = (text: string): void => appendFileSync(file, `${text}\n`)
  const server = kind === 'syslog' ? syslogServer('tls', store) : batchServer(store)
  server.listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'))
}
