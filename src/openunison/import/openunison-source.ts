import { readFile, stat } from 'node:fs/promises'
import { Document, isMap, parse, parseAllDocuments } from 'yaml'
import { groups } from '#config/build/kinds.ts'
import { splitDocuments } from '#config/context/locate.ts'
import type { SecretLookup } from '#config/context/secrets.ts'
import { configResources, openUnisonResource } from '#config/sources/cluster-documents.ts'
import { readDirectory, type SourceFile } from '#config/sources/folder-documents.ts'
import { openUnisonKind } from '#config/sources/openunison-values.ts'
import { KubernetesSecrets } from '#config/watch/kubernetes-secrets.ts'
import { isJsonObject } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { KubernetesConnection } from '#protocols/kubernetes/api-connection.ts'
import { AccessRefused, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import { ObjectClient } from '#protocols/kubernetes/object-client.ts'
import { myvdInserts, myvdKey, myvdName } from './myvd-inserts.ts'
import { yamlText } from './yaml-text.ts'

export interface ImportedObject {
  readonly kind: string
  readonly name: string
  /** As it is written to the new folder. */
  readonly text: string
}

/** What an installation of OpenUnison is made of. */
export interface OpenUnisonSource {
  readonly objects: readonly ImportedObject[]
  /** `OpenUnison` objects and documents without a kind, such as the values of a chart. */
  readonly values: readonly string[]
  /** Numbers of objects that are not configuration, such as Deployments, by kind. */
  readonly others: ReadonlyMap<string, number>
  /** ValidatingWebhookConfigurations that leave changes of these objects to OpenUnison; undefined if they may not be listed. */
  readonly webhooks: readonly string[] | undefined
  readonly problems: readonly string[]
  readonly secrets: SecretLookup
  /** Fetches the secrets that were looked up and are not known; false if there are none. */
  fetchSecrets(): Promise<boolean>
  close(): void
}

/** Texts of at most this size are read from one file. */
const mostFileBytes = 64 << 20
const mostObjects = 5_000
const callMillis = 15_000
const serverFields = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'managedFields',
  'ownerReferences',
  'selfLink',
  'finalizers',
  'generateName',
]
const copiedObject = 'kubectl.kubernetes.io/last-applied-configuration'

/** A folder or file of YAML, such as rendered charts or an export. Throws an Error if there is none. */
export async function openRenderedSource(path: string): Promise<OpenUnisonSource> {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) throw new Error(`${path} does not exist`)
  const collected = new Collection()
  if (found.isDirectory()) {
    const { files, problems } = await readDirectory(path)
    collected.problems.push(...problems.map(({ name, message }) => `${name}: ${message}`))
    for (const file of files) collected.addFile(file)
  } else {
    if (!found.isFile()) throw new Error(`${path} is neither a folder nor a file`)
    if (found.size > mostFileBytes) throw new Error(`${path} is larger than ${mostFileBytes} bytes`)
    collected.addFile({ name: path, text: await readFile(path, 'utf8') })
  }
  collected.addDirectory()
  return { ...collected, secrets: collected.secret, fetchSecrets: async () => false, close: () => {} }
}

/** The objects of a live namespace. Throws an Error if the cluster can't be reached or doesn't let the account list them. */
export async function openNamespace(connection: KubernetesConnection, namespace: string): Promise<OpenUnisonSource> {
  const client = await ObjectClient.open(connection, { who: `namespace ${namespace}`, timeoutMillis: callMillis })
  try {
    const collected = new Collection()
    for (const { plural, versions, kind } of listedKinds) {
      const { version, objects } = await listNewest(client, { plural, versions, namespace })
      for (const { content } of objects) {
        collected.add(new Document({ ...content, apiVersion: `${groups[0]}/${version}`, kind }), plural)
      }
    }
    await addMyvd(client, namespace, collected)
    const webhooks = await webhooksFor(client, namespace)
    collected.addDirectory()
    const secrets = new KubernetesSecrets(client, namespace, silentLogger)
    return {
      ...collected,
      webhooks,
      secrets: secrets.lookUp,
      fetchSecrets: () => secrets.fetchMissing(),
      close: () => client.close(),
    }
  } catch (error) {
    client.close()
    throw error
  }
}

/** The virtual directory of the namespace; an account that may not read it gets a problem. */
async function addMyvd(client: ObjectClient, namespace: string, collected: Collection): Promise<void> {
  try {
    const found = await client.get({ group: '', version: 'v1', plural: 'configmaps', namespace }, myvdName)
    if (found !== undefined) collected.addConfigMap(found.content)
  } catch (error) {
    if (!(error instanceof AccessRefused)) throw error
    collected.problems.push(`ConfigMap ${myvdName}, which has the directory: ${error.message}`)
  }
}

const webhookKind = 'ValidatingWebhookConfiguration'

async function webhooksFor(client: ObjectClient, namespace: string): Promise<string[] | undefined> {
  const group = 'admissionregistration.k8s.io'
  try {
    const plural = `${webhookKind.toLowerCase()}s`
    const found = await client.list({ group, version: 'v1', plural }, mostObjects)
    return found.flatMap(({ content }) => webhookName(content, namespace) ?? [])
  } catch (error) {
    if (!(error instanceof AccessRefused)) throw error
    return undefined
  }
}

/** The name of a configuration by which changes of OpenUnison's objects fail while it does not run. */
function webhookName(
  { metadata, webhooks }: Readonly<Record<string, unknown>>,
  namespace?: string,
): string | undefined {
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  const blocks = (webhook: unknown): boolean => {
    if (!isJsonObject(webhook) || webhook['failurePolicy'] === 'Ignore') return false
    const { clientConfig, rules } = webhook
    const service = isJsonObject(clientConfig) ? clientConfig['service'] : undefined
    if (namespace !== undefined && !(isJsonObject(service) && service['namespace'] === namespace)) return false
    return (Array.isArray(rules) ? rules : []).some((rule: unknown) => {
      const of = isJsonObject(rule) ? rule['apiGroups'] : undefined
      return Array.isArray(of) && of.includes(groups[0])
    })
  }
  const isBlocking = Array.isArray(webhooks) && webhooks.some(blocks)
  return isBlocking && typeof name === 'string' && /^[a-z0-9.-]{1,253}$/.test(name) ? name : undefined
}

const noDirectory = `The ConfigMap ${myvdName} of the chart orchestra is missing. It has the directory: without it, no user logs in with a password`

const listedKinds: readonly { readonly kind: string; readonly plural: string; readonly versions: readonly string[] }[] =
  [
    openUnisonResource,
    ...configResources.map(({ kind, plural }) => ({ kind: kind.kind, plural, versions: kind.versions })),
    { kind: 'MessageListener', plural: 'messagelisteners', versions: ['v1'] },
  ]

/** In the newest version that the cluster serves; a cluster without the kind has no objects of it. */
async function listNewest(
  client: ObjectClient,
  { plural, versions, namespace }: { plural: string; versions: readonly string[]; namespace: string },
): Promise<{ version: string; objects: readonly ClusterObject[] }> {
  for (const version of versions.toReversed()) {
    try {
      return { version, objects: await client.list({ group: groups[0], version, plural, namespace }, mostObjects) }
    } catch (error) {
      if (!(error instanceof KindNotServed)) throw error
    }
  }
  return { version: '', objects: [] }
}

/** Sorts documents into objects, values, secrets and others. */
class Collection {
  readonly objects: ImportedObject[] = []
  readonly values: string[] = []
  readonly others = new Map<string, number>()
  readonly webhooks: string[] = []
  readonly problems: string[] = []
  readonly #secrets = new Map<string, ReadonlyMap<string, string>>()
  #directory = ''

  readonly secret: SecretLookup = (name, key) => this.#secrets.get(name)?.get(key)

  addFile({ name, text }: SourceFile): void {
    this.#attempt(name, () => {
      for (const [i, document] of readDocuments(text).entries()) {
        const where = `${name}, document ${i + 1}`
        const [error] = document.errors
        if (error === undefined) this.add(document, where)
        else this.problems.push(`${where}: ${error.message}${text.includes('{{') ? unrendered : ''}`)
      }
    })
  }

  add(document: Document, where: string): void {
    this.#attempt(where, () => this.#sort(document, where))
  }

  /** YAML that is nested too deeply, or grows too large by its aliases, throws. */
  #attempt(where: string, read: () => void): void {
    try {
      read()
    } catch (error) {
      this.problems.push(`${where}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  #sort(document: Document, where: string): void {
    const value: unknown = document.toJS()
    if (value === null || value === undefined) return
    if (!isJsonObject(value)) {
      this.problems.push(`${where}: is not an object`)
      return
    }
    const { kind, apiVersion, metadata, items } = value
    if (kind === undefined && apiVersion === undefined) this.values.push(yamlText(document))
    else if (typeof kind !== 'string' || typeof apiVersion !== 'string') this.problems.push(`${where}: has no kind`)
    else if (kind.endsWith('List') && Array.isArray(items)) {
      for (const [i, item] of items.entries()) this.add(new Document(item), `${where}, item ${i + 1}`)
    } else if (kind === 'Secret') this.#addSecret(value)
    else if (kind === 'ConfigMap' && this.addConfigMap(value)) return
    else if (!isOurs(apiVersion)) this.#addOther(kind, value)
    else if (kind === openUnisonKind) this.values.push(written(document))
    else {
      const name = isJsonObject(metadata) ? metadata['name'] : undefined
      this.objects.push({ kind, name: typeof name === 'string' ? name : '', text: written(document) })
    }
  }

  #addOther(kind: string, value: Readonly<Record<string, unknown>>): void {
    this.others.set(kind, (this.others.get(kind) ?? 0) + 1)
    const webhook = kind === webhookKind ? webhookName(value) : undefined
    if (webhook !== undefined) this.webhooks.push(webhook)
  }

  /** Whether it has the virtual directory. */
  addConfigMap({ data }: Readonly<Record<string, unknown>>): boolean {
    const text = isJsonObject(data) ? data[myvdKey] : undefined
    if (typeof text !== 'string') return false
    this.#directory = text
    return true
  }

  /** Adds the parts of the virtual directory, unless there are some already. Call it when the targets are known. */
  addDirectory(): void {
    const has = (name: string): boolean => this.objects.some(({ kind }) => kind === name)
    if (has('DirectoryInsert')) return
    if (this.#directory === '') {
      if (has('AuthenticationChain')) this.problems.push(noDirectory)
      return
    }
    const targets = this.objects.flatMap(({ kind, name, text }) => {
      if (kind !== 'Target') return []
      const { spec } = parse(text) as { readonly spec?: { readonly className?: unknown } }
      return [{ name, className: String(spec?.className) }]
    })
    const { objects, problems } = myvdInserts(this.#directory, targets)
    this.objects.push(...objects.map((object) => ({ kind: 'DirectoryInsert', ...object })))
    this.problems.push(...problems)
  }

  #addSecret({ metadata, data, stringData }: Readonly<Record<string, unknown>>): void {
    const name = isJsonObject(metadata) ? metadata['name'] : undefined
    if (typeof name !== 'string') return
    const texts = (from: unknown, read: (text: string) => string): [string, string][] =>
      Object.entries(isJsonObject(from) ? from : {}).flatMap(([key, text]) =>
        typeof text === 'string' ? [[key, read(text)] as [string, string]] : [],
      )
    const decoded = texts(data, (text) => Buffer.from(text, 'base64').toString('utf8'))
    this.#secrets.set(name, new Map([...decoded, ...texts(stringData, (text) => text)]))
  }
}

const unrendered = '; if this is a template of a chart, import what "helm template" makes of it'

/** After an unclosed quote, the parser takes other documents for a part of it: each is then read for itself. */
function readDocuments(text: string): readonly Document[] {
  const parsed = parsedDocuments(text)
  const isBroken = parsed.some(({ errors }) => errors.length > 0)
  return isBroken ? splitDocuments(text).flatMap((part) => parsedDocuments(part.text)) : parsed
}

function parsedDocuments(text: string): readonly Document[] {
  const parsed = parseAllDocuments(text, { prettyErrors: false, logLevel: 'error' })
  return 'empty' in parsed ? [] : parsed
}

function isOurs(apiVersion: string): boolean {
  const [group, version] = apiVersion.split('/')
  return version !== undefined && (groups as readonly string[]).includes(group ?? '')
}

/** Without the fields of the API server and the copy that kubectl makes. Comments and scalars of one line stay as written. */
function written(document: Document): string {
  const remove = (path: readonly string[], name: string): void => {
    const map = path.length === 0 ? document.contents : document.getIn(path)
    if (isMap(map)) map.delete(name)
  }
  for (const field of serverFields) remove(['metadata'], field)
  remove(['metadata', 'annotations'], copiedObject)
  remove([], 'status')
  return yamlText(document)
}
