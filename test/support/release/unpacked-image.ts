import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { run } from './run-program.ts'

interface Manifest {
  readonly layers: readonly { readonly digest: string }[]
  readonly config: { readonly digest: string }
}

interface ImageConfig {
  readonly Entrypoint: readonly string[]
  readonly User: string
  readonly Env: readonly string[]
  readonly WorkingDir: string
}

export interface UnpackedImage {
  readonly root: string
  /** The processors and systems that the image has parts for. */
  readonly platforms: readonly object[]
  readonly config: ImageConfig
  /** The variables of the image. */
  readonly environment: Readonly<Record<string, string>>
  /** A command in the image, as its user and in its working directory: `kubectl exec` without a cluster. */
  exec(...command: readonly string[]): readonly [program: string, args: string[]]
}

export const architecture = arch() === 'arm64' ? 'arm64' : 'amd64'

/** Unpacks the layers for this machine, as a container runtime does. Only root can: files belong to others, and it has a device. */
export async function unpackImage(layout: string, root: string): Promise<UnpackedImage> {
  const blob = (digest: string): string => join(layout, 'blobs/sha256', digest.slice('sha256:'.length))
  const json = (digest: string) => JSON.parse(readFileSync(blob(digest), 'utf8'))
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
  const all: { digest: string; platform: { architecture: string } }[] = json(manifests[0].digest).manifests
  const own = all.find(({ platform }) => platform.architecture === architecture)
  if (own === undefined) throw new Error(`the image has nothing for ${architecture}`)
  const manifest: Manifest = json(own.digest)
  const config: ImageConfig = json(manifest.config.digest).config
  mkdirSync(root, { recursive: true })
  for (const { digest } of manifest.layers) await run('tar', ['-C', root, '--same-owner', '-xpzf', blob(digest)])
  // As every container runtime provides it.
  if (!existsSync(join(root, 'dev'))) {
    mkdirSync(join(root, 'dev'))
    await run('mknod', ['-m', '666', join(root, 'dev/null'), 'c', '1', '3'])
  }
  const [user, group] = config.User.split(':')
  return {
    root,
    platforms: all.map(({ platform }) => platform),
    config,
    environment: Object.fromEntries(config.Env.map((one) => /^([^=]*)=(.*)$/s.exec(one)?.slice(1) ?? [one, ''])),
    exec: (...command) => [
      'unshare',
      [`--root=${root}`, `--wd=${config.WorkingDir}`, `--setgid=${group}`, `--setuid=${user}`, '--', ...command],
    ],
  }
}
