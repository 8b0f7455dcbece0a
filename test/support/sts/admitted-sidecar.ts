import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import * as z from 'zod'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'

/** The parts of an admitted pod that a kubelet needs to run its sidecar. */
const admittedSchema = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string(), uid: z.string() }),
  spec: z.object({
    serviceAccountName: z.string(),
    initContainers: z.array(
      z.object({
        name: z.string(),
        command: z.array(z.string()).optional(),
        args: z.array(z.string()).optional(),
        env: z.array(z.object({ name: z.string(), value: z.string().optional() })).optional(),
        volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })).optional(),
        readinessProbe: z.object({ exec: z.object({ command: z.array(z.string()) }) }).optional(),
      }),
    ),
    volumes: z.array(
      z.object({
        name: z.string(),
        projected: z
          .object({
            sources: z.array(
              z.object({
                serviceAccountToken: z
                  .object({ audience: z.string().optional(), expirationSeconds: z.number(), path: z.string() })
                  .optional(),
              }),
            ),
          })
          .optional(),
      }),
    ),
  }),
})

export interface AdmittedSidecar {
  readonly process: ChildProcess
  /** The path of a pod's file on this machine. */
  place(path: string): string
  log(): string
  /** The result of its readiness probe. */
  ready(): boolean
  /** Renews its credentials, like a kubelet before they expire. */
  project(): Promise<void>
  /** Ends it and its children, and removes its files. */
  destroy(): void
}

/**
 * Runs the sidecar of an admitted pod like a kubelet: expands `$(NAME)`, projects its service-account tokens by
 * TokenRequest, and runs its command with only its variables. Its mounts are below a temporary folder.
 */
export async function runAdmittedSidecar(admitted: unknown, cluster: KubeClient): Promise<AdmittedSidecar> {
  const { metadata, spec } = admittedSchema.parse(admitted)
  const container = spec.initContainers.find(({ name }) => name === 'sts-creds-sidecar')
  if (container === undefined) throw new Error('the pod has no sidecar')
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-admitted-'))
  const mounts = container.volumeMounts ?? []
  for (const { mountPath } of mounts) mkdirSync(join(root, mountPath), { recursive: true })
  const moved = (text: string): string =>
    mounts.reduce((sofar, { mountPath }) => sofar.replaceAll(mountPath, join(root, mountPath)), text)

  const project = async (): Promise<void> => {
    for (const { name, mountPath } of mounts) {
      const sources = spec.volumes.find((volume) => volume.name === name)?.projected?.sources ?? []
      for (const { serviceAccountToken: wish } of sources) {
        if (wish === undefined) continue
        const account = { namespace: metadata.namespace, name: spec.serviceAccountName }
        const audiences = wish.audience === undefined ? [] : [wish.audience]
        const boundPod = { name: metadata.name, uid: metadata.uid }
        const token = await cluster.token(account, { audiences, seconds: wish.expirationSeconds, boundPod })
        replaceFile(join(root, mountPath, wish.path), token)
      }
    }
  }
  await project()

  const values = new Map((container.env ?? []).map(({ name, value = '' }) => [name, value]))
  const words = [...(container.command ?? []), ...(container.args ?? [])].map((word) => expand(word, values))
  const env: Record<string, string> = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' }
  for (const [name, value] of values) env[name] = moved(expand(value, values))
  const [program = '', ...args] = words
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true, env })
  let text = ''
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return {
    process: child,
    place: (path) => join(root, path),
    log: () => text,
    ready: () => {
      const [probe = '', ...rest] = (container.readinessProbe?.exec.command ?? []).map((word) =>
        moved(expand(word, values)),
      )
      return spawnSync(probe, rest, { env }).status === 0
    },
    project,
    destroy: () => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, 'SIGKILL')
      }
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** `$(NAME)` is the value of a variable, if it exists, and `$$` is `$`. */
const expand = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replace(/\$(?:\$|\(([-._A-Za-z0-9]+)\))/g, (whole, name: string | undefined) =>
    name === undefined ? '$' : (values.get(name) ?? whole),
  )

function replaceFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}
