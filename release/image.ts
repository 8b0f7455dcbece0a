import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commitSeconds, compressed, sha256, tarOf } from './archive.ts'
import { type Architecture, architectures, nodeProgram, placeLibraries } from './runtime.ts'

interface Blob {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const user = 10_001

/** The texts that a pattern finds in a launcher. The image has no shell to run it, and the same settings. */
function settingsOf(launcher: 'gatehouse' | 'node', pattern: RegExp): string[] {
  const text = readFileSync(new URL(`../bin/${launcher}`, import.meta.url), 'utf8')
  const found = Array.from(text.matchAll(pattern), (match) => match.slice(1).join('='))
  if (found.length === 0) throw new Error(`bin/${launcher} has nothing like ${pattern}`)
  return found
}

const [nodeFlags = ''] = settingsOf('node', /^ +exec "\$node" (.+) "\$@"$/gm)
const [programFlags = ''] = settingsOf('gatehouse', /^exec "\$root\/bin\/node" (.+) "\$main" "\$@"$/gm)

export const environment = [
  'PATH=/usr/bin',
  // The launcher counts the cores; this is for up to eight.
  'UV_THREADPOOL_SIZE=8',
  ...settingsOf('gatehouse', /^(MALLOC_\w+)=\$\{\w+:-(\d+)\}$/gm),
  'NODE_COMPILE_CACHE=/tmp/compiled',
]
export const entrypoint = ['/usr/bin/node', ...nodeFlags.split(' '), ...programFlags.split(' '), '/app/lib/main.js']
const command = [
  'serve',
  '--config',
  '/etc/gatehouse/config',
  '--data',
  '/data',
  '--listen',
  '0.0.0.0:8080',
  '--metrics',
  '0.0.0.0:8081',
]

/**
 * Writes an image for both processors as an OCI layout, without a daemon: Node.js with its libraries, and the bundle.
 * No shell, no package manager; runs as a user without rights, also with a read-only root file system.
 */
export function writeImage(layout: string, bundle: string, version: string): void {
  rmSync(layout, { recursive: true, force: true })
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
  const blob = (content: Buffer | string, mediaType: string): Blob => {
    const digest = sha256(content)
    writeFileSync(join(layout, 'blobs/sha256', digest), content)
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(content) }
  }
  const json = (value: object, mediaType: string): Blob => blob(JSON.stringify(value), mediaType)
  const layer = (content: Buffer) => ({
    blob: blob(compressed(content), 'application/vnd.oci.image.layer.v1.tar+gzip'),
    id: `sha256:${sha256(content)}`,
  })

  const application = layer(inFolder((folder) => placeApplication(folder, bundle)))
  const data = layer(inFolder(placeOwn, user))
  const created = new Date(Number(commitSeconds()) * 1000).toISOString()
  const manifests = architectures.map((architecture) => {
    const layers = [layer(inFolder((folder) => placeRuntime(folder, architecture))), application, data]
    const config = json(
      {
        architecture,
        os: 'linux',
        created,
        config: {
          User: `${user}:${user}`,
          Env: environment,
          Entrypoint: entrypoint,
          Cmd: command,
          WorkingDir: '/app',
          ExposedPorts: { '8080/tcp': {}, '8081/tcp': {}, '8443/tcp': {} },
          Volumes: { '/data': {} },
          StopSignal: 'SIGTERM',
          Labels: {
            'org.opencontainers.image.title': 'Gatehouse',
            'org.opencontainers.image.version': version,
            'org.opencontainers.image.licenses': 'Apache-2.0',
          },
        },
        rootfs: { type: 'layers', diff_ids: layers.map(({ id }) => id) },
        history: ['Node.js and its libraries', 'Gatehouse', 'folders to write to'].map((comment) => ({
          created,
          comment,
        })),
      },
      'application/vnd.oci.image.config.v1+json',
    )
    const mediaType = 'application/vnd.oci.image.manifest.v1+json'
    const manifest = json({ schemaVersion: 2, mediaType, config, layers: layers.map((one) => one.blob) }, mediaType)
    return { ...manifest, platform: { architecture, os: 'linux' } }
  })
  const mediaType = 'application/vnd.oci.image.index.v1+json'
  const index = json({ schemaVersion: 2, mediaType, manifests }, mediaType)
  const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': version } }
  writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType, manifests: [named] }))
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
}

/** The tar file of a folder that `fill` fills. */
function inFolder(fill: (folder: string) => void, owner = 0): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-layer-'))
  try {
    fill(folder)
    return tarOf(folder, readdirSync(folder), { owner })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The bundle, and a command for `kubectl exec`: it becomes the process that the entrypoint starts, without a shell. */
function placeApplication(root: string, bundle: string): void {
  cpSync(bundle, join(root, 'app'), { recursive: true })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  const words = entrypoint.map((word) => JSON.stringify(word)).join(', ')
  // `process.execve` is marked as experimental.
  const command = `#!/usr/bin/node --disable-warning=ExperimentalWarning
process.execve(${JSON.stringify(entrypoint[0])}, [${words}, ...process.argv.slice(2)])
`
  writeFileSync(join(root, 'usr/bin/gatehouse'), command)
  chmodSync(join(root, 'usr/bin/gatehouse'), 0o755)
}

/** The folders that the gateway writes to. */
function placeOwn(root: string): void {
  for (const [name, mode] of [
    ['data', 0o700],
    ['tmp', 0o1777],
  ] as const) {
    mkdirSync(join(root, name))
    chmodSync(join(root, name), mode)
  }
}

function placeRuntime(root: string, architecture: Architecture): void {
  for (const folder of ['etc', 'usr/bin']) mkdirSync(join(root, folder), { recursive: true })
  placeLibraries(root, architecture)
  cpSync(nodeProgram(architecture), join(root, 'usr/bin/node'))
  chmodSync(join(root, 'usr/bin/node'), 0o755)
  writeFileSync(join(root, 'etc/passwd'), `root:x:0:0:root:/:\ngatehouse:x:${user}:${user}::/data:\n`)
  writeFileSync(join(root, 'etc/group'), `root:x:0:\ngatehouse:x:${user}:\n`)
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n')
}
