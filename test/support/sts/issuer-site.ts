import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'

export interface IssuerSite {
  /** `http://127.0.0.1:<port>/<path>` */
  readonly url: string
  /** Sent with every answer. */
  headers: Record<string, string>
  /** Answers instead of the folder, if it is set. */
  override: ((path: string, answer: ServerResponse) => void) | undefined
  /** Methods, paths and bodies of the requests, in order. */
  readonly calls: { method: string; path: string; body: string; authorization: string | undefined }[]
  close(): void
}

/** A web server for a folder, like one that publishes an issuer's documents, until the test ends. */
export async function issuerSite(folder: string, path = ''): Promise<IssuerSite> {
  const site = await openIssuerSite(folder, path)
  onTestFinished(() => site.close())
  return site
}

/** The same until it is closed; optionally over TLS with the certificate of `test-certificates.ts`. */
export async function openIssuerSite(folder: string, path = '', tls = false): Promise<IssuerSite> {
  const listener: RequestListener = async (request, answer) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const body = Buffer.concat(chunks).toString()
    site.calls.push({ method, path: url, body, authorization: headers.authorization })
    if (site.override !== undefined) return site.override(url, answer)
    try {
      const text = await readFile(join(folder, url.slice(path.length)), 'utf8')
      answer.writeHead(200, { 'content-type': 'application/json', ...site.headers }).end(text)
    } catch {
      answer.writeHead(404).end()
    }
  }
  const server = tls
    ? createTlsServer({ key: testServerKey, cert: testServerCertificate }, listener)
    : createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const site: IssuerSite = {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}${path}`,
    headers: { 'cache-control': 'public, max-age=300' },
    override: undefined,
    calls: [],
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return site
}
