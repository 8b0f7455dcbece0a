import { CloseableHttpClient, ConnectionManager } from './apache-http.ts'
import { decodeText, fromBase64 } from './bytes.ts'
import { ArrayList } from './collections.ts'
import { HashMap } from './hash-map.ts'
import { askGateway } from './host-bridge.ts'
import { type User, userFrom } from './identity.ts'
import { IllegalArgumentException, IOException } from './java-exception.ts'
import { itemsOf, javaText, javaValue, optionalText } from './java-value.ts'
import { DataSource } from './sql.ts'

/** com.tremolosecurity.provisioning.core.ProvisioningTarget: a target of the configuration, by name. */
export class ProvisioningTarget {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  getProvider(): UserStoreProvider {
    return new UserStoreProvider(this.#name)
  }

  /** Null if the target has no such user. */
  findUser(userID: unknown, _request?: unknown): User | null {
    return findUser(this.#name, userID, [])
  }
}

function findUser(target: string, userID: unknown, attributes: unknown): User | null {
  const named = itemsOf(javaValue(attributes) ?? []).map(javaText)
  const found = askGateway('findUser', { target, userID: javaText(userID), attributes: named })
  return found === null ? null : userFrom(found as Readonly<Record<string, unknown>>)
}

/** The answer of an API server. */
interface ClusterAnswer {
  readonly status: number
  readonly body: string
}

/**
 * com.tremolosecurity.provisioning.core.UserStoreProvider. The gateway makes the calls with its own credentials, which
 * never reach a script: its token is a placeholder.
 */
export class UserStoreProvider {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  getName(): string {
    return this.#name
  }

  /** The target's name: targets have no labels here. */
  getLabel(): string {
    return this.#name
  }

  /** Of a database. */
  getDS(): DataSource {
    return new DataSource(this.#name)
  }

  /** Of the API server. */
  getUrl(): string {
    return javaText(askGateway('clusterUrl', { target: this.#name }))
  }

  getAuthToken(): string {
    return 'held-by-the-gateway'
  }

  createClient(): HttpCon {
    return new HttpCon()
  }

  /** The body, also of a 404; all other failures throw. */
  callWS(_token: unknown, _con: unknown, uri: unknown): string {
    return this.#call('GET', uri).body
  }

  callWSPost(_token: unknown, _con: unknown, uri: unknown, json: unknown): string {
    return this.#call('POST', uri, json).body
  }

  callWSPut(_token: unknown, _con: unknown, uri: unknown, json: unknown): string {
    return this.#call('PUT', uri, json).body
  }

  callWSPatchJson(_token: unknown, _con: unknown, uri: unknown, json: unknown, contentType?: unknown): string {
    return this.#call('PATCH', uri, json, optionalText(contentType) ?? 'application/merge-patch+json').body
  }

  callWSDelete(_token: unknown, _con: unknown, uri: unknown): string {
    return this.#call('DELETE', uri).body
  }

  isObjectExistsByName(_token: unknown, _con: unknown, uri: unknown, name: unknown): boolean {
    return this.#call('GET', `${javaText(uri)}/${javaText(name)}`).status !== 404
  }

  isObjectExistsByPath(_token: unknown, _con: unknown, uri: unknown): boolean {
    return this.#call('GET', uri).status !== 404
  }

  /** The attributes that are needed, as a set or an array. */
  findUser(userID: unknown, attributes?: unknown, _request?: unknown): User | null {
    return findUser(this.#name, userID, attributes)
  }

  isGroupExists(name: unknown, _user?: unknown, _request?: unknown): boolean {
    return askGateway('groupExists', { target: this.#name, group: javaText(name) }) === true
  }

  /** Attributes that are instructions to OpenUnison's database, such as a statement, are left out. */
  addGroup(name: unknown, attributes?: unknown, _user?: unknown, _request?: unknown): void {
    const given: Record<string, string> = Object.create(null)
    if (attributes instanceof HashMap) {
      for (const [key, value] of attributes)
        if (!/^unison\./.test(javaText(key))) given[javaText(key)] = javaText(value)
    }
    askGateway('addGroup', { target: this.#name, group: javaText(name), attributes: given })
  }

  deleteGroup(name: unknown, _user?: unknown, _request?: unknown): void {
    askGateway('deleteGroup', { target: this.#name, group: javaText(name) })
  }

  #call(method: string, uri: unknown, json?: unknown, contentType = 'application/json'): ClusterAnswer {
    const path = javaText(uri)
    const body = json === undefined ? {} : { body: javaText(json), contentType }
    const answer = askGateway('clusterCall', { target: this.#name, method, path, ...body }) as ClusterAnswer
    const isFine = (answer.status >= 200 && answer.status <= 299) || answer.status === 404
    if (!isFine) throw new IOException(`Unexpected result calling '${path}' - ${answer.status} / ${answer.body}`)
    return answer
  }
}

/** com.tremolosecurity.config.xml.TremoloType: of the configuration, only the list of targets. */
export class TremoloType {
  getProvisioning(): ProvisioningType {
    return new ProvisioningType()
  }
}

/** com.tremolosecurity.config.xml.ProvisioningType. */
export class ProvisioningType {
  getTargets(): TargetsType {
    return new TargetsType()
  }
}

/** com.tremolosecurity.config.xml.TargetsType. */
export class TargetsType {
  /** Of `TargetType`. */
  getTarget(): ArrayList {
    const found = askGateway('targets', {}) as readonly { readonly name: string; readonly isCluster: boolean }[]
    return new ArrayList(found.map(({ name, isCluster }) => new TargetType(name, isCluster)))
  }
}

/** com.tremolosecurity.config.xml.TargetType. */
export class TargetType {
  readonly #name: string
  readonly #isCluster: boolean

  constructor(name: string, isCluster: boolean) {
    this.#name = name
    this.#isCluster = isCluster
  }

  getName(): string {
    return this.#name
  }

  /** OpenUnison's class for a Kubernetes cluster; empty for all other targets. */
  getClassName(): string {
    return this.#isCluster ? 'com.tremolosecurity.unison.openshiftv3.OpenShiftTarget' : ''
  }

  /** Targets have no labels here. */
  getLabel(): null {
    return null
  }
}

/** com.tremolosecurity.provisioning.util.HttpCon. The gateway has the connection, so there is nothing to close. */
export class HttpCon {
  /** For calls to other systems, without credentials of the gateway. */
  getHttp(): CloseableHttpClient {
    return new CloseableHttpClient()
  }

  getBcm(): ConnectionManager {
    return new ConnectionManager()
  }
}

/** com.tremolosecurity.unison.openshiftv3.OpenShiftTarget: its static members. */
export const OpenShiftTarget = {
  /** Letters in lower case, `.` and `-` stay; any other UTF-16 unit becomes `x-<number>-x`. */
  sub2uid: (sub: unknown): string =>
    javaText(sub)
      .replace(/[^.\-a-zA-Z]/g, (unit) => `x-${unit.charCodeAt(0)}-x`)
      .replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
}

/** com.tremolosecurity.k8s.util.K8sUtils. */
export const K8sUtils = {
  loadConfigMap: (target: unknown, namespace: unknown, name: unknown): HashMap =>
    dataOf(target, namespace, 'configmaps', name, (value) => value),
  /** With decoded values. */
  loadSecret: (target: unknown, namespace: unknown, name: unknown): HashMap =>
    dataOf(target, namespace, 'secrets', name, (value) => decodeText(fromBase64(value))),
}

function dataOf(target: unknown, namespace: unknown, plural: string, name: unknown, read: (value: string) => string) {
  const path = `/api/v1/namespaces/${segment(namespace)}/${plural}/${segment(name)}`
  const request = { target: javaText(target), method: 'GET', path }
  const { status, body } = askGateway('clusterCall', request) as ClusterAnswer
  if (status !== 200) throw new IOException(`Unexpected result calling '${path}' - ${status}`)
  const { data } = JSON.parse(body) as { readonly data?: Readonly<Record<string, string>> }
  const map = new HashMap()
  for (const [key, value] of Object.entries(data ?? {})) map.put(key, read(value))
  return map
}

/** Names of Kubernetes objects need no encoding, so everything else would lead to another path. */
function segment(value: unknown): string {
  const text = javaText(value)
  if (/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text)) return text
  throw new IllegalArgumentException(`"${text}" is not the name of a Kubernetes object`)
}
