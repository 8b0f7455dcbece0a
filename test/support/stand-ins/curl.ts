import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import process from 'node:process'
import { parseArgs } from 'node:util'

/** The options of curl that README and quickstart use. Others are errors, so that a new one is noticed. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    silent: { type: 'boolean', short: 's' },
    'show-error': { type: 'boolean', short: 'S' },
    location: { type: 'boolean', short: 'L' },
    get: { type: 'boolean', short: 'G' },
    'fail-with-body': { type: 'boolean' },
    'max-time': { type: 'string' },
    request: { type: 'string', short: 'X' },
    header: { type: 'string', short: 'H', multiple: true, default: [] },
    data: { type: 'string', short: 'd', multiple: true, default: [] },
    'data-urlencode': { type: 'string', multiple: true, default: [] },
    cookie: { type: 'string', short: 'b' },
    'cookie-jar': { type: 'string', short: 'c' },
    output: { type: 'string', short: 'o' },
    'write-out': { type: 'string', short: 'w', default: '' },
  },
})

/** A file that does not exist yet has no cookies. */
const jar = values.cookie !== undefined && existsSync(values.cookie) ? readFileSync(values.cookie, 'utf8') : ''
const cookies = new Map<string, string>(JSON.parse(jar || '[]'))

const encoded = values['data-urlencode'].map((field) => {
  const [name, ...value] = field.split('=')
  return `${name}=${encodeURIComponent(value.join('='))}`
})
const data = [...values.data, ...encoded].join('&')
const address = positionals[0] ?? ''
let url = new URL(values.get === true && data !== '' ? `${address}?${data}` : address)
let body = values.get === true || data === '' ? undefined : data

// Not by fetch, whose headers say that the script of a page sends the request.
for (let redirects = 0; ; redirects++) {
  const headers = new Headers(
    values.header.map((line): [string, string] => [
      line.split(':', 1)[0] ?? '',
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  if (body !== undefined && !headers.has('content-type'))
    headers.set('content-type', 'application/x-www-form-urlencoded')
  if (cookies.size > 0) headers.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '))
  const method = values.request ?? (body === undefined ? 'GET' : 'POST')
  const sent = request(url, {
    method,
    headers: Object.fromEntries(headers),
    timeout: Number(values['max-time'] ?? 120) * 1000,
  })
  sent.on('timeout', () => sent.destroy(new Error('timed out'))).end(body)
  const [response]: IncomingMessage[] = await once(sent, 'response')
  if (response === undefined) throw new Error('no response')
  for (const line of response.headers['set-cookie'] ?? []) {
    const [name = '', ...value] = (line.split(';', 1)[0] ?? '').split('=')
    if (/;\s*max-age=0/i.test(line)) cookies.delete(name)
    else cookies.set(name, value.join('='))
  }
  const {
    statusCode = 0,
    headers: { location },
  } = response
  if (values.location === true && location !== undefined && redirects < 10) {
    response.resume()
    url = new URL(location, url)
    body = undefined
    continue
  }
  const content = Buffer.concat(await response.toArray())
  if (values.output === undefined) process.stdout.write(content)
  else writeFileSync(values.output, content)
  const written = { http_code: String(statusCode), url_effective: url.href }
  process.stdout.write(
    values['write-out']
      .replaceAll('\\n', '\n')
      .replaceAll(/%\{(\w+)\}/g, (_, name: string) => written[name as keyof typeof written]),
  )
  if (values['cookie-jar'] !== undefined) writeFileSync(values['cookie-jar'], JSON.stringify([...cookies]))
  if (values['fail-with-body'] === true && statusCode >= 400) process.exitCode = 22
  break
}
