import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { exchange } from '#protocols/http/http-client.ts'
import { clockFinding, type Finding, ok, type Probe, problem, reasonOf, warning } from './diagnosis.ts'

const dayMillis = 86_400_000
const soonDays = 14

/** The public address of the gateway: its name in DNS, and the certificate that is served there. */
export function publicAddressProbes(publicUrl: string | undefined): Probe[] {
  const url = publicUrl === undefined ? null : URL.parse(publicUrl)
  if (url === null) return []
  const { hostname } = url
  const name = hostname.replace(/^\[|\]$/g, '')
  const dns: Probe = {
    probe: 'dns',
    at: hostname,
    advice: `Add an address record for ${hostname}, or correct GATEHOUSE_URL.`,
    run: async () => [ok((await lookup(name, { all: true })).map(({ address }) => address).join(', '))],
  }
  if (url.protocol !== 'https:') return isIP(name) === 0 ? [dns] : []
  const tls: Probe = {
    probe: 'tls',
    at: url.host,
    advice:
      'Start the gateway or its proxy, and let this machine reach the public address, to check what is served there.',
    run: (signal) => servedCertificate(name, Number(url.port || 443), signal),
  }
  return isIP(name) === 0 ? [dns, tls] : [tls]
}

/** A listener that does not answer is a warning, since the gateway may not run yet. */
async function servedCertificate(host: string, port: number, signal: AbortSignal): Promise<Finding[]> {
  let socket: TLSSocket
  try {
    socket = await handshake(host, port, signal)
  } catch (error) {
    const advice =
      'Start the gateway or its proxy, and let this machine reach the public address, to check its certificate.'
    return [warning(`nothing that speaks TLS answers: ${reasonOf(error)}`, advice)]
  }
  try {
    return certificateFindings(socket, new Date())
  } finally {
    socket.destroy()
  }
}

/** Does not reject a certificate: the caller says what is wrong with it. */
async function handshake(host: string, port: number, signal: AbortSignal): Promise<TLSSocket> {
  const options = { host, port, rejectUnauthorized: false, ...(isIP(host) === 0 ? { servername: host } : {}) }
  const socket = connect(options)
  const done = Promise.withResolvers<void>()
  socket.once('secureConnect', done.resolve)
  socket.once('error', done.reject)
  signal.addEventListener('abort', () => socket.destroy(signal.reason as Error), { once: true })
  await done.promise
  return socket
}

function certificateFindings(socket: TLSSocket, now: Date): Finding[] {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return [problem('the server shows no certificate', 'Configure one with --tls-cert.')]
  const expires = new Date(certificate.validTo)
  const days = Math.floor((expires.getTime() - now.getTime()) / dayMillis)
  if (days < 0) {
    return [problem(`the certificate expired on ${expires.toISOString()}`, 'Replace certificate and key together.')]
  }
  // Node.js reports a wrong name, an unknown authority or an incomplete chain as one code.
  if (!socket.authorized)
    return [
      problem(
        `clients reject the certificate: ${String(socket.authorizationError)}`,
        tlsAdvice(String(socket.authorizationError)),
      ),
    ]
  const seen = `the certificate is valid until ${expires.toISOString()}`
  return [days < soonDays ? warning(`${seen}, ${days} days`, 'Renew it now.') : ok(seen)]
}

function tlsAdvice(reason: string): string {
  if (/ALTNAME/.test(reason)) return 'Use a certificate that has the host of GATEHOUSE_URL as a name.'
  if (/FIRST_CERT|LEAF|GET_ISSUER/.test(reason)) {
    return 'Put the intermediate certificates after the certificate in the file of --tls-cert; for an authority of your own, set NODE_EXTRA_CA_CERTS.'
  }
  return 'Use a certificate of an authority that clients trust; for an authority of your own, set NODE_EXTRA_CA_CERTS.'
}

/** What TLS says of a certificate whose authority this machine doesn't trust. */
const unknownAuthority = /self-signed certificate|unable to (?:get (?:local )?issuer|verify the first) certificate/i
/** No one runs Node.js by hand here. */
const nodeAdvice = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/
const authorityAdvice =
  'Put the certificate of its authority into a file, and set NODE_EXTRA_CA_CERTS to its path for serve and doctor; "gatehouse init --issuer-ca FILE" does that for a new gateway.'

const maxDocument = 1_000_000

/** An issuer that chains trust: its discovery document, its keys and its clock. */
export function issuerProbe(issuer: string, publicUrl: string | undefined): Probe {
  const isOwn = publicUrl !== undefined && issuer.startsWith(`${publicUrl}/`)
  const advice = 'Check the address of the issuer, and that this machine reaches it over TLS.'
  return {
    probe: 'issuer',
    at: issuer,
    advice,
    run: async (signal) => {
      try {
        return await issuerFindings(issuer, signal)
      } catch (error) {
        const seen = reasonOf(error)
        if (isOwn) return [warning(seen, 'This gateway is the issuer: start it to check it.')]
        return [
          unknownAuthority.test(seen) ? problem(seen.replace(nodeAdvice, ''), authorityAdvice) : problem(seen, advice),
        ]
      }
    },
  }
}

async function issuerFindings(issuer: string, signal: AbortSignal): Promise<Finding[]> {
  const from = Date.now()
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const { document, date } = await readJson(address, signal)
  const to = Date.now()
  const findings: Finding[] = []
  if (document['issuer'] !== issuer) {
    const advice = 'Write the issuer in the configuration exactly as in its discovery document.'
    findings.push(problem(`its discovery document names the issuer ${JSON.stringify(document['issuer'])}`, advice))
  }
  const { jwks_uri: keys } = document
  if (typeof keys !== 'string') {
    findings.push(problem('its discovery document has no jwks_uri', 'Ask the operator of the issuer.'))
  } else {
    const { document: set } = await readJson(keys, signal)
    const count = Array.isArray(set['keys']) ? set['keys'].length : 0
    if (count === 0) findings.push(problem(`${keys} has no keys`, 'Ask the operator of the issuer.'))
    else findings.push(ok(`discovery answered in ${to - from} ms, with ${count} ${count === 1 ? 'key' : 'keys'}`))
  }
  // The header has whole seconds.
  if (date !== undefined) findings.push(clockFinding(date, { from: from - 1000, to }, 'the issuer'))
  return findings
}

async function readJson(
  address: string,
  signal: AbortSignal,
): Promise<{ document: JsonObject; date: Date | undefined }> {
  const answer = await exchange(
    { method: 'GET', url: new URL(address), headers: { accept: 'application/json' } },
    {},
    { signal, bytes: maxDocument },
  )
  if (answer.status !== 200) throw new Error(`${address} answered ${answer.status}`)
  const document = parsed(answer.body, address)
  if (!isJsonObject(document)) throw new Error(`${address} did not answer with a JSON object`)
  const date = new Date(answer.headers.date ?? '')
  return { document, date: Number.isNaN(date.getTime()) ? undefined : date }
}

function parsed(text: string, address: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${address} did not answer with JSON`, { cause })
  }
}
