import { createHash } from 'node:crypto'
import { mkdir, open, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ConfigMapDestination, IssuerDocuments, S3Destination } from '#config/configuration/token-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { environmentProxies, OutgoingHttpsAgent } from '#protocols/http/outgoing-proxy.ts'
import { discoveryPath, keysPath } from '#protocols/sts/discovery-document.ts'
import { bundlePath } from '#protocols/sts/spiffe.ts'

/** A destination for documents. */
export interface Publisher {
  /** Writes the files in order, and resolves only when all of them can be read there. Ends with the signal. */
  put(files: readonly IssuerFile[], signal: AbortSignal): Promise<void>
}

/** One document to be written. */
export interface IssuerFile {
  /** Below the place of the issuer, without a leading slash. */
  readonly path: string
  readonly text: string
  readonly contentType: string
  readonly cacheControl: string
}

/** The keys come first, so that a reader of the discovery document finds what it names. */
export function issuerFiles({ discovery, keys, bundle, maxAgeSeconds }: IssuerDocuments): readonly IssuerFile[] {
  const cacheControl = `public, max-age=${maxAgeSeconds}`
  const file = (path: string, content: object): IssuerFile => ({
    path: path.slice(1),
    text: JSON.stringify(content),
    contentType: 'application/json',
    cacheControl,
  })
  const ofDomain = bundle === undefined ? [] : [file(bundlePath, bundle)]
  return [...ofDomain, file(keysPath, keys), file(discoveryPath, discovery)]
}

/** Different for every content. */
export function fingerprint(files: readonly IssuerFile[]): string {
  return createHash('sha256').update(JSON.stringify(files)).digest('base64url')
}

/** A folder that a web server serves. A reader finds an old file or a new one, and never a part. */
export const folderPublisher = (folder: string): Publisher => ({
  async put(files, signal) {
    for (const { path, text } of files) {
      signal.throwIfAborted()
      await replaceFile(join(folder, path), text)
    }
  },
})

async function replaceFile(path: string, text: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const draft = join(folder, `.${newId()}.tmp`)
  try {
    const file = await open(draft, 'wx', 0o644)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await unlink(draft).catch(() => {})
    throw error
  }
  const entries = await open(folder, 'r')
  try {
    await entries.sync()
  } finally {
    await entries.close()
  }
}

/** Attempts of one call, including the first. */
const attempts = 2

/**
 * A bucket of Amazon S3 or a compatible service. The SDK is loaded only if there is a bucket. Checksums are sent
 * only if the protocol needs them, since many servers reject the newer ones.
 */
export const s3Publisher = (destination: S3Destination, proxies = environmentProxies()): Publisher => ({
  async put(files, signal) {
    const { S3Client, PutObjectCommand } = await import('@aws-sdk/client-s3')
    const { bucket, prefix, region, endpoint, pathStyle, credentials } = destination
    const client = new S3Client({
      region,
      forcePathStyle: pathStyle,
      maxAttempts: attempts,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { httpsAgent: new OutgoingHttpsAgent({ keepAlive: true, maxSockets: 8 }, proxies) },
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(credentials === undefined ? {} : { credentials: { ...credentials } }),
    })
    try {
      for (const { path, text, contentType, cacheControl } of files) {
        const command = new PutObjectCommand({
          Bucket: bucket,
          Key: prefix === '' ? path : `${prefix}/${path}`,
          Body: text,
          ContentType: contentType,
          CacheControl: cacheControl,
        })
        await client.send(command, { abortSignal: signal })
      }
    } finally {
      client.destroy()
    }
  },
})

interface Resource {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace: string
}

interface ConfigMapObject {
  readonly metadata: { readonly resourceVersion: string }
  readonly content: Readonly<Record<string, unknown>>
}

/** The objects of a cluster that a ConfigMap needs. `replace` throws VERSION_MISMATCH after a concurrent change. */
export interface ConfigMapObjects {
  get(resource: Resource, name: string): Promise<ConfigMapObject | undefined>
  create(resource: Resource, object: Readonly<Record<string, unknown>>): Promise<unknown>
  replace(resource: Resource, name: string, object: Readonly<Record<string, unknown>>): Promise<unknown>
}

const writeAttempts = 3

/**
 * A ConfigMap, both documents in one write, under the last parts of their paths: `certs` and
 * `openid-configuration`. Its other content stays.
 */
export const configMapPublisher = (
  { namespace, name }: ConfigMapDestination,
  objects: ConfigMapObjects,
): Publisher => ({
  async put(files, signal) {
    const resource = { group: '', version: 'v1', plural: 'configmaps', namespace }
    const documents = Object.fromEntries(files.map(({ path, text }) => [path.slice(path.lastIndexOf('/') + 1), text]))
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted()
      try {
        const present = await objects.get(resource, name)
        if (present === undefined) await objects.create(resource, configMap({ name, namespace }, documents))
        else await objects.replace(resource, name, changed(present, { name, namespace }, documents))
        return
      } catch (error) {
        const raced = error instanceof GatewayError && (error.code === 'VERSION_MISMATCH' || error.code === 'CONFLICT')
        if (!raced || attempt >= writeAttempts) throw error
      }
    }
  },
})

const configMap = (metadata: object, data: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data })

function changed({ metadata, content }: ConfigMapObject, identity: object, documents: object) {
  const { data } = content
  const kept = typeof data === 'object' && data !== null ? data : {}
  const given = content['metadata']
  const stored = typeof given === 'object' && given !== null ? given : {}
  const { resourceVersion } = metadata
  return { ...content, ...configMap({ ...stored, ...identity, resourceVersion }, { ...kept, ...documents }) }
}
