import { existsSync, globSync, lstatSync, readFileSync, type Stats, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { CertificateWithKey, GivenWebhookTls } from '#config/configuration/sts-webhook.ts'
import { NamedFiles } from '#config/context/secrets.ts'
import { readAddress } from '#database/databases.ts'
import { isLoopbackHost, parseHostPort } from '#kernel/address.ts'
import { isOfOwnAuthority } from '#protocols/admission/webhook-tls.ts'
import { readPostgresAddress } from '#protocols/sql/postgres-address.ts'
import { checkPair, timeProblem } from '#server/listener-certificate.ts'
import type { Finding, ProductionSetup, ServeSettings } from './production-check.ts'

const fail = (at: string, message: string, remedy?: string): Finding => ({ level: 'fail', at, message, remedy })
const warn = (at: string, message: string): Finding => ({ level: 'warn', at, message })

export function findPlainListener({ settings }: ProductionSetup): Finding[] {
  const { listen, tls, trustedProxies } = settings
  const everyone = trustedProxies.filter((range) => range.endsWith('/0'))
  return [
    ...(tls === undefined && trustedProxies.length === 0
      ? [fail('--listen', `${listen} speaks plain HTTP, and no proxy with TLS is trusted`)]
      : []),
    ...everyone.map((range) =>
      fail(
        '--trusted-proxy',
        `${range} lets every client choose its own address and scheme`,
        'Name the addresses of the proxy only.',
      ),
    ),
  ]
}

const soonDays = 14
const dayMillis = 86_400_000

/** The certificates that the gateway would start with. It renews generated ones. */
function givenCertificates({
  configuration,
  settings,
}: ProductionSetup): { at: string; pair: () => CertificateWithKey }[] {
  const { tls } = settings
  const webhook = configuration.stsWebhook
  const files = new NamedFiles()
  const read = (file: string): string => files.read(file)
  return [
    ...(tls === undefined
      ? []
      : [{ at: '--tls-cert', pair: () => ({ certificate: read(tls.certFile), privateKey: read(tls.keyFile) }) }]),
    ...(webhook?.tls.kind === 'given'
      ? [{ at: `${webhook.at}: sts.injector.webhook`, pair: (): CertificateWithKey => webhook.tls as GivenWebhookTls }]
      : []),
  ]
}

export function findBadCertificates(setup: ProductionSetup): Finding[] {
  const now = new Date()
  return givenCertificates(setup).flatMap(({ at, pair }): Finding[] => {
    try {
      const given = pair()
      const expires = checkPair(given)
      const problem = timeProblem(given, now)
      if (problem !== undefined) return [fail(at, problem)]
      const days = Math.floor((expires.getTime() - now.getTime()) / dayMillis)
      return days >= soonDays ? [] : [warn(at, `the certificate expires on ${expires.toISOString()}, in ${days} days`)]
    } catch (error) {
      const message = `it cannot be used: ${error instanceof Error ? error.message : String(error)}`
      return [fail(at, message, 'Correct the certificate and its key, which are PEM and belong together.')]
    }
  })
}

/** The certificate for a first start, which is no problem until users come. */
export function findOwnCertificate({ settings: { tls } }: ProductionSetup): Finding[] {
  if (tls === undefined || !isOfOwnAuthority(new NamedFiles().read(tls.certFile))) return []
  const message =
    'the certificate is the one that init made for a first start, which browsers and identity providers do not trust'
  return [fail('--tls-cert', message, 'Replace both by a certificate of an authority that clients trust and its key.')]
}

export function certificateNote(setup: ProductionSetup): string | undefined {
  const lines = givenCertificates(setup).map(({ at, pair }) => `${at} expires on ${checkPair(pair()).toISOString()}`)
  return lines.length === 0 ? undefined : lines.join(', ')
}

/** `serve` uses the address of its listener if neither the environment nor a values document has one. */
export function findWrongUrl({ configuration, settings }: ProductionSetup): Finding[] {
  const { listen, tls, environment } = settings
  const given = environment['GATEHOUSE_URL'] ?? configuration.publicUrl ?? ''
  const url = given === '' ? `${tls === undefined ? 'http' : 'https'}://${listen}` : given
  const problem = urlProblem(url, configuration)
  if (problem === undefined) return []
  const unset = `it is not set, so the configuration uses ${url}, the address of --listen`
  return [fail('GATEHOUSE_URL', given === '' ? unset : problem)]
}

function urlProblem(url: string, { applications }: Configuration): string | undefined {
  const { protocol, hostname } = URL.parse(url) ?? {}
  if (hostname === undefined || !/^https?:$/.test(protocol ?? ''))
    return `"${url}" is not an address that begins with https://`
  if (protocol === 'http:') return `${url} sends users to plain HTTP`
  if (isLoopbackHost(hostname) || hostname === '0.0.0.0' || hostname === '[::]') {
    return `${url} is an address that only this machine reaches`
  }
  const hosts = [...new Set(applications.flatMap(({ urls }) => urls.flatMap((one) => one.hosts)))].sort()
  if (hosts.length === 0 || hosts.includes('*') || hosts.includes(hostname)) return undefined
  const some = hosts.length > 5 ? `${hosts.slice(0, 5).join(', ')} and ${hosts.length - 5} more` : hosts.join(', ')
  return `no URL is configured for the host "${hostname}", only for ${some}`
}

const otherUsers = 0o077
/** Their content is lost when the machine or the container restarts. */
export const temporaryFolders: readonly string[] = [tmpdir(), '/tmp', '/var/tmp', '/dev/shm', '/run', '/var/run']

/** What to do about keys that other users can access. */
export const closedModes = 'Use mode 0700 for folders and 0600 for files.'

export function findUnsafeKeys({ configuration, settings }: ProductionSetup): Finding[] {
  const { environment, databaseUrl } = settings
  const given = (environment['GATEHOUSE_SECRET_KEY'] ?? '') !== ''
  const isEmbedded = databaseUrl === undefined || readAddress(databaseUrl).dialect === 'sqlite'
  const findings: Finding[] = []
  if (!given && !isEmbedded) {
    findings.push(
      fail(
        'GATEHOUSE_SECRET_KEY',
        'it is not set, so each gateway creates its own key, and cannot read what another sealed',
        'Give it to every gateway; "openssl rand -base64 32" makes one.',
      ),
    )
  }
  if (isEmbedded || !given) findings.push(...dataFolderFindings(settings, isEmbedded))
  const keys = globSync('keys/*.{key,pem}', { cwd: configuration.folder }).map((name) =>
    join(configuration.folder, name),
  )
  const tls = settings.tls === undefined ? [] : [settings.tls.keyFile]
  for (const file of [...keys.filter(holdsPrivateKey).sort(), ...tls]) {
    const { mode } = statSync(file)
    if ((mode & 0o027) !== 0)
      findings.push(fail(file, `other users can read this private key (mode ${modeText(mode)})`))
  }
  return findings
}

function dataFolderFindings({ data, temporary }: ServeSettings, isEmbedded: boolean): Finding[] {
  const folder = resolve(data)
  const holds = isEmbedded ? 'the database and its keys are' : 'its keys are'
  const place = temporary.find((one) => `${folder}${sep}`.startsWith(`${resolve(one)}${sep}`))
  if (place !== undefined) {
    const message = `${folder} is in ${place}, a place for temporary files: ${holds} lost with it`
    return [fail('--data', message, 'Put it on a disk that stays.')]
  }
  const found = statIfPresent(folder)
  if (found === undefined)
    return [fail('--data', `${folder} does not exist`, 'Create it with mode 0700, or correct the option.')]
  const isVolume = found.uid === 0 && found.dev !== lstatSync(dirname(folder)).dev
  const inside = ['keys', 'keys/*', 'gatehouse.db*'].flatMap((pattern) => globSync(pattern, { cwd: folder })).sort()
  return [...(isVolume ? [] : [folder]), ...inside.map((name) => join(folder, name))].flatMap((path) => {
    const { mode } = statSync(path)
    return (mode & otherUsers) === 0 ? [] : [fail(path, `other users can access it (mode ${modeText(mode)})`)]
  })
}

/** Whether a file for the audit is on the disk of an embedded database. */
export function isBesideDatabase(files: readonly string[], { data, databaseUrl }: ServeSettings): boolean {
  const database =
    databaseUrl === undefined ? { dialect: 'sqlite', address: join(data, 'gatehouse.db') } : readAddress(databaseUrl)
  if (database.dialect !== 'sqlite') return false
  const disk = diskOf(resolve(database.address))
  return files.every((file) => diskOf(resolve(data, file)) === disk)
}

/** Of a file that may not exist yet. */
function diskOf(path: string): number {
  const folder = dirname(path)
  return existsSync(path) || folder === path ? statSync(path).dev : diskOf(folder)
}

export function findPlainDatabase({ settings: { databaseUrl } }: ProductionSetup): Finding[] {
  if (databaseUrl === undefined || readAddress(databaseUrl).dialect === 'sqlite') return []
  const problem = plainConnection(databaseUrl)
  return problem === undefined ? [] : [fail('--database', problem)]
}

/** Why others could read the connection to this PostgreSQL database, if they can. */
export function plainConnection(url: string): string | undefined {
  const servers = readPostgresAddress(url).servers.map((server) => new URL(server.url))
  const mode = servers[0]?.searchParams.get('sslmode') ?? null
  const host = servers
    .map(({ hostname, searchParams }) => searchParams.get('host') ?? hostname)
    .filter((one) => one !== '' && !one.startsWith('/') && !isLoopbackHost(one))
    .join(' and ')
  if (host === '' || mode === 'verify-full') return undefined
  const how = mode === null ? 'without TLS' : `with sslmode=${mode}`
  return `the connection to ${host} is made ${how}, so others can read it or impersonate the database`
}

export function findPublicMetrics({ settings: { metrics, listen } }: ProductionSetup): Finding[] {
  if (metrics === undefined) return []
  const { host } = parseHostPort(metrics)
  if (isLoopbackHost(host) || isPrivateAddress(host)) return []
  const all = host === '0.0.0.0' || host === '::'
  if (!all) return [fail('--metrics', `${metrics} is a public address`)]
  // In a container that listens on all interfaces, the network decides who can connect.
  const where = parseHostPort(listen).host === host ? 'as is the public listener' : 'though the public listener is not'
  return [
    warn('--metrics', `${metrics} is on all interfaces, ${where}: make sure that only your monitoring reaches it`),
  ]
}

const isPrivateAddress = (host: string): boolean =>
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|f[cd][0-9a-f]{2}:|fe80:)/i.test(host)

const holdsPrivateKey = (file: string): boolean => readFileSync(file, 'utf8').includes('PRIVATE KEY-----')
const statIfPresent = (path: string): Stats | undefined => (existsSync(path) ? statSync(path) : undefined)
const modeText = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, '0')
