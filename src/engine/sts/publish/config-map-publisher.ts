import type { Publisher } from '#engine/sts/publish/publisher.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ConfigMapDestination } from '#sdk/sts/token-keys.ts'

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

/** The objects of a cluster, as far as a ConfigMap needs them. `replace` throws VERSION_MISMATCH when another was faster. */
export interface ConfigMapObjects {
  get(resource: Resource, name: string): Promise<ConfigMapObject | undefined>
  create(resource: Resource, object: Readonly<Record<string, unknown>>): Promise<unknown>
  replace(resource: Resource, name: string, object: Readonly<Record<string, unknown>>): Promise<unknown>
}

const attempts = 3

/**
 * A ConfigMap, both documents in one write, under the last parts of their paths: `certs` and `openid-configuration`.
 * What else is in it stays.
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
        if (!raced || attempt >= attempts) throw error
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
