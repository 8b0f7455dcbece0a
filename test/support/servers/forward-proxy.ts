import http from 'node:http'
import https from 'node:https'
import { type AddressInfo, connect } from 'node:net'

/** A real forward proxy on a free port of this machine. */
export interface ForwardProxy {
  readonly port: number
  /** What it was asked for: `CONNECT api.example.com:443` or `GET http://api.example.com/x`. */
  readonly seen: readonly string[]
  /** The credentials that it was given with each of these. */
  readonly logins: readonly (string | undefined)[]
  close(): Promise<void>
}

export interface ProxyBehavior {
  /** The port of this machine behind every name, since these servers have no names. */
  readonly target: number
  /** `user:password` that it demands. */
  readonly login?: string
  /** Refuses every CONNECT with this status. */
  readonly refusal?: number
  /** Makes it a proxy by https. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

export async function startForwardProxy({ target, login, refusal, tls }: ProxyBehavior): Promise<ForwardProxy> {
  const seen: string[] = []
  const logins: (string | undefined)[] = []
  const wanted = login && `Basic ${Buffer.from(login).toString('base64')}`
  const isRefused = ({ method, url, headers }: http.IncomingMessage): boolean => {
    const given = headers['proxy-authorization']
    seen.push(`${method} ${url}`)
    logins.push(given)
    return wanted !== undefined && given !== wanted
  }
  const serve: http.RequestListener = (request, response) => {
    if (isRefused(request)) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic realm="proxy"' }).end('who are you?')
      return
    }
    const { method, url = '', headers } = request
    const { 'proxy-authorization': _, ...others } = headers
    const asked = new URL(url)
    const outgoing = http.request(
      { host: '127.0.0.1', port: target, method, path: asked.pathname + asked.search, headers: others },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    outgoing.on('error', () => response.writeHead(502).end())
    request.pipe(outgoing)
  }
  const server = tls === undefined ? http.createServer(serve) : https.createServer(tls, serve)
  server.on('connect', (request, socket) => {
    socket.on('error', () => {})
    if (isRefused(request)) return void socket.end('HTTP/1.1 407 Who Are You\r\nProxy-Authenticate: Basic\r\n\r\n')
    if (refusal !== undefined) return void socket.end(`HTTP/1.1 ${refusal} No\r\n\r\n`)
    const upstream = connect(target, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.pipe(socket)
      socket.pipe(upstream)
    })
    upstream.on('error', () => socket.destroy())
    upstream.on('close', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    logins,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
