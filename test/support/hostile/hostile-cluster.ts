import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { resourcePath } from '#protocols/kubernetes/object-client.ts'
import type { ClusterObjects } from '#sdk/target/kubernetes-cluster.ts'

/** RFC 1123, the API server's rule for most names, and its rule for names of bindings. */
const isName = (plural: string, name: string): boolean =>
  plural.endsWith('rolebindings') ? !/[/%]/.test(name) : /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)

/**
 * Simulates an API server: objects by the path of their address, and their content as the JSON of the body. It needs no
 * network, so that many values can pass through it.
 */
export class HostileCluster implements ClusterObjects {
  readonly #objects = new Map<string, ClusterObject>()
  #version = 1

  async get(resource: ClusterResource, name: string): Promise<ClusterObject | undefined> {
    return this.#objects.get(pathOf(resource, name))
  }

  async list(resource: ClusterResource): Promise<readonly ClusterObject[]> {
    const [start, end] = [`/apis/${resource.group}/${resource.version}/`, `/${resource.plural}/`]
    const place = resource.namespace === undefined ? start : `${start}namespaces/${resource.namespace}${end}`
    return [...this.#objects].flatMap(([path, object]) => (path.startsWith(place) && path.includes(end) ? object : []))
  }

  async create(resource: ClusterResource, object: Readonly<Record<string, unknown>>): Promise<ClusterObject> {
    const content = JSON.parse(JSON.stringify(object)) as { metadata: { name: string } }
    const { name } = content.metadata
    if (!isName(resource.plural, name)) throw new GatewayError('BAD_REQUEST', `"${name}" is no name`)
    const path = pathOf(resource, name)
    if (this.#objects.has(path)) throw new GatewayError('CONFLICT', `${path} is there`)
    return this.#store(path, resource, name, content)
  }

  async replace(
    resource: ClusterResource,
    name: string,
    object: Readonly<Record<string, unknown>>,
  ): Promise<ClusterObject> {
    const path = pathOf(resource, name)
    const content = JSON.parse(JSON.stringify(object)) as { metadata: { name: string; resourceVersion?: string } }
    const before = this.#objects.get(path)
    if (before === undefined || content.metadata.name !== name) throw new GatewayError('NOT_FOUND', path)
    if (content.metadata.resourceVersion !== before.metadata.resourceVersion) {
      throw new GatewayError('VERSION_MISMATCH', path)
    }
    return this.#store(path, resource, name, content)
  }

  async remove(resource: ClusterResource, name: string): Promise<boolean> {
    return this.#objects.delete(pathOf(resource, name))
  }

  #store(path: string, { namespace }: ClusterResource, name: string, content: Readonly<Record<string, unknown>>) {
    const resourceVersion = String(this.#version++)
    const place = namespace === undefined ? {} : { namespace }
    const metadata = { name, ...place, uid: path, resourceVersion }
    const stored: ClusterObject = { metadata, content: { ...content, metadata } }
    this.#objects.set(path, stored)
    return stored
  }
}

/** The path as a server parses it from the request line. */
function pathOf(resource: ClusterResource, name: string): string {
  const written = resourcePath(resource, name)
  const { pathname, search, hash } = new URL(written, 'https://cluster.test')
  const parts = pathname.split('/').map(decodeURIComponent)
  const depth = resource.namespace === undefined ? 6 : 8
  if (pathname !== written || search !== '' || hash !== '' || parts.length !== depth || parts.at(-1) !== name) {
    throw new Error(`the address ${written} leads elsewhere`)
  }
  return parts.join('/')
}
