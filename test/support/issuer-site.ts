import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export interface IssuerSite {
  /** `http://127.0.0.1:<port>/<path>` */
  readonly url: string
  /** Sent with every answer. */
  headers: Record<string, string>
  /** Answers instead of the folder, where it is set. */
  override: ((path: string, answer: ServerResponse) => void) | undefined
  /** Methods, paths and bodies of what was asked, in order. */
  readonly calls: { method: string; path: string; body: string; authorization: string | undefined }[]
}

/** A web server that shows a folder, as one does that an issuer's documents are published with. */
export async function issuerSite(folder: string, path = ''): Promise<IssuerSite> {
  const server = createServer(async (request, answer) => {
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
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const site: IssuerSite = {
    url: `http://127.0.0.1:${port}${path}`,
    headers: { 'cache-control': 'public, max-age=300' },
    override: undefined,
    calls: [],
  }
  return site
}
