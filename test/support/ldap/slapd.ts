import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { freePort } from '#testing/gateway/free-port.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { exitOnSigterm } from '#testing/run/worker-end.ts'

export type SlapdOverlay = 'memberof' | 'ppolicy' | 'refint' | 'unique' | 'sssvlv' | 'valsort'

export interface SlapdOptions {
  /** `ppolicy` and `memberof` if absent. */
  readonly overlays?: readonly SlapdOverlay[]
  /** LDIF that is loaded before the first start, after the base entry, `ou=people` and `ou=groups`. */
  readonly seed?: string
  /** A file of LDIF, for seeds that are too long for memory. */
  readonly seedFile?: string
  /** LDAPS on its own port, and StartTLS on the other. */
  readonly tls?: boolean
  /** Lines for the database section of `slapd.conf`, such as limits and access rules. */
  readonly settings?: readonly string[]
  /** Lines for the head of `slapd.conf`: the test's attribute types and object classes. */
  readonly schema?: readonly string[]
  readonly adminPassword?: string
  /** The administrator can change the server's own configuration, in memory, as `cn=config`. */
  readonly config?: boolean
  /** Commits wait for the disk. */
  readonly durable?: boolean
  /** A file that gets each change as LDIF. */
  readonly changes?: string
}

export interface Slapd {
  /** `ldap://127.0.0.1:…`. */
  readonly url: string
  /** `ldaps://127.0.0.1:…`; empty without TLS. */
  readonly ldapsUrl: string
  /** The certificate of the authority that signed the server's, in PEM. */
  readonly ca: string
  readonly baseDn: string
  readonly peopleDn: string
  readonly groupsDn: string
  readonly adminDn: string
  readonly adminPassword: string
  /** Ends it at once, like a crash. Its data stays. */
  kill(): Promise<void>
  /** Starts it again, ended or not, with the same data at the same address. */
  restart(): Promise<void>
  /** With its data. */
  stop(): Promise<void>
  /** Runs `ldapadd` with a file of LDIF. */
  add(file: string, dn?: string): Promise<void>
}

const startMillis = 15_000
const toolMillis = 300_000
const baseDn = 'dc=example,dc=test'
const adminDn = `cn=admin,${baseDn}`
const usualPassword = 'the admin password'
const schemaFolders = ['/etc/ldap/schema', '/etc/openldap/schema', '/usr/local/etc/openldap/schema']
const moduleFolders = ['/usr/lib/ldap', '/usr/lib64/openldap', '/usr/local/libexec/openldap']

const baseLdif = `dn: ${baseDn}
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,${baseDn}
objectClass: organizationalUnit
ou: people

dn: ou=groups,${baseDn}
objectClass: organizationalUnit
ou: groups

`

/** The path of a program of the slapd package, which Debian installs outside the PATH; throws if not found. */
export function slapdTool(name: 'slapd' | 'slapadd'): string {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/local/sbin', '/usr/local/libexec']
  const found = folders.map((folder) => join(folder, name)).find((file) => existsSync(file))
  if (found === undefined) throw new Error(`${name} is not installed`)
  return found
}

let running: Promise<Slapd> | undefined

/** One with the usual options. The files of this worker share it, each in its own branches. */
export function sharedSlapd(): Promise<Slapd> {
  exitOnSigterm()
  running ??= startSlapd()
  return running
}

/** A real OpenLDAP in a temporary folder, on free ports of loopback. */
export async function startSlapd(options: SlapdOptions = {}): Promise<Slapd> {
  const program = slapdTool('slapd')
  const { adminPassword = usualPassword } = options
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-slapd-'))
  const port = await freePort()
  const tlsPort = options.tls === true ? await freePort() : undefined
  const addresses = [`ldap://127.0.0.1:${port}/`, ...(tlsPort === undefined ? [] : [`ldaps://127.0.0.1:${tlsPort}/`])]
  const config = join(folder, 'slapd.conf')
  let child: ChildProcess | undefined
  const atExit = (): void => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)

  async function start(): Promise<void> {
    // The limit prevents slapd from reserving a table for a million open files, which containers allow.
    const script = 'ulimit -n 2048 2>/dev/null; exec "$@"'
    const args = [program, '-d', '0', '-f', config, '-h', addresses.join(' ')]
    const started = spawn('sh', ['-c', script, 'sh', ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    child = started
    let output = ''
    started.stderr?.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-2000)
    })
    const end = performance.now() + startMillis
    while (!(await accepts(port))) {
      if (started.exitCode !== null || started.signalCode !== null || performance.now() > end) {
        throw new Error(`slapd did not start: ${output.trim()}`)
      }
      await new Promise((resume) => setTimeout(resume, 20))
    }
  }

  async function end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const running = child
    child = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = new Promise((resume) => running.once('exit', resume))
    running.kill(signal)
    const late = setTimeout(() => running.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(late)
  }

  async function stop(): Promise<void> {
    process.off('exit', atExit)
    await end('SIGTERM')
    await rm(folder, { recursive: true, force: true })
  }

  try {
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'key.pem'), testServerKey, { mode: 0o600 })
    await writeFile(join(folder, 'certificate.pem'), testServerCertificate)
    await writeFile(config, slapdConf(folder, options), { mode: 0o600 })
    await load(config, folder, `${baseLdif}${options.seed ?? ''}`)
    if (options.seedFile !== undefined) await addFile(config, options.seedFile)
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: `ldap://127.0.0.1:${port}`,
    ldapsUrl: tlsPort === undefined ? '' : `ldaps://127.0.0.1:${tlsPort}`,
    ca: testServerCertificate,
    baseDn,
    peopleDn: `ou=people,${baseDn}`,
    groupsDn: `ou=groups,${baseDn}`,
    adminDn,
    adminPassword,
    kill: () => end('SIGKILL'),
    restart: async () => {
      await end('SIGTERM')
      await start()
    },
    stop,
    add: async (file, dn = adminDn) => {
      const args = ['-x', '-H', `ldap://127.0.0.1:${port}`, '-D', dn, '-w', adminPassword, '-f', file]
      await promisify(execFile)('ldapadd', args, { timeout: toolMillis }).catch((cause) => {
        throw new Error(`ldapadd: ${String(cause?.stderr ?? cause).slice(-1000)}`, { cause })
      })
    },
  }
}

async function load(config: string, folder: string, ldif: string): Promise<void> {
  const file = join(folder, 'seed.ldif')
  await writeFile(file, ldif)
  await addFile(config, file)
  await rm(file)
}

async function addFile(config: string, file: string): Promise<void> {
  const options = { timeout: toolMillis, maxBuffer: 64 * 1024 * 1024 }
  await promisify(execFile)(slapdTool('slapadd'), ['-q', '-f', config, '-l', file], options).catch((cause) => {
    throw new Error(`slapadd: ${String(cause?.stderr ?? cause).slice(-1000)}`, { cause })
  })
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const answer = (ready: boolean) => () => {
      socket.destroy()
      resolve(ready)
    }
    socket.once('connect', answer(true)).once('error', answer(false)).setTimeout(1000, answer(false))
  })
}

/** `valsort` returns descriptions in the order of the alphabet, whatever the order in which they were written. */
const overlaySettings: Partial<Record<SlapdOverlay, readonly string[]>> = {
  refint: ['refint_attributes member'],
  valsort: [`valsort-attr description ${baseDn} alpha-ascend`],
}

function slapdConf(folder: string, options: SlapdOptions): string {
  const { overlays = ['ppolicy', 'memberof'], settings = [], adminPassword = usualPassword, durable = false } = options
  const schemas = firstFolder(schemaFolders)
  const modules = moduleFolders.find((path) => existsSync(path))
  const isModule = (name: string) => modules !== undefined && existsSync(join(modules, `${name}.so`))
  const audit = options.changes === undefined ? [] : ['auditlog']
  const loaded = ['back_mdb', ...overlays, ...audit].filter(isModule)
  const indexed = ['uid', 'cn', 'mail', 'member', 'uniqueMember', 'memberUid', 'entryUUID', 'entryCSN']
  return [
    ...['core', 'cosine', 'inetorgperson', 'nis'].map((name) => `include ${join(schemas, `${name}.schema`)}`),
    ...(options.schema ?? []),
    ...(modules === undefined ? [] : [`modulepath ${modules}`]),
    ...loaded.map((name) => `moduleload ${name}`),
    `pidfile ${join(folder, 'slapd.pid')}`,
    `argsfile ${join(folder, 'slapd.args')}`,
    'sizelimit unlimited',
    'conn_max_pending 1000',
    'conn_max_pending_auth 10000',
    ...(options.tls === true
      ? [
          `TLSCertificateFile ${join(folder, 'certificate.pem')}`,
          `TLSCertificateKeyFile ${join(folder, 'key.pem')}`,
          `TLSCACertificateFile ${join(folder, 'certificate.pem')}`,
        ]
      : []),
    ...(options.config === true ? ['database config', 'rootdn "cn=config"', `rootpw "${adminPassword}"`] : []),
    'database mdb',
    `suffix "${baseDn}"`,
    `rootdn "${adminDn}"`,
    `rootpw "${adminPassword}"`,
    `directory ${join(folder, 'data')}`,
    'maxsize 2147483648',
    ...(durable ? [] : ['dbnosync']),
    'index objectClass eq',
    ...indexed.map((name) => `index ${name} eq`),
    ...settings,
    ...overlays.flatMap((name) => [`overlay ${name}`, ...(overlaySettings[name] ?? [])]),
    ...audit.flatMap((name) => [`overlay ${name}`, `${name} ${options.changes}`]),
    '',
  ].join('\n')
}

function firstFolder(folders: readonly string[]): string {
  const found = folders.find((path) => existsSync(path))
  if (found === undefined) throw new Error('the schema files of slapd are not installed')
  return found
}
