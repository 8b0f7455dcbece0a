import { X509Certificate } from 'node:crypto'
import { Document, parse } from 'yaml'
import { catalog } from '#catalog/catalog.ts'
import { unreturnedName } from '#config/checks/group-names.ts'
import { ConfigDocument } from '#config/context/config-document.ts'
import { readYaml } from '#config/context/locate.ts'
import type { LocatedIssue } from '#config/context/located-issue.ts'
import { placeholder } from '#config/context/substitute.ts'
import { buildConfiguration, type LoadResult } from '#config/load/load.ts'
import { configResources } from '#config/sources/cluster-documents.ts'
import { openUnisonKind, readOpenUnisonValues } from '#config/sources/openunison-values.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { ImportedObject, OpenUnisonSource } from './openunison-source.ts'
import { applicationOfLink, importedUrls } from './proxied-applications.ts'
import { insteadFolder, proxyReplacements } from './proxy-replacements.ts'
import { yamlText } from './yaml-text.ts'

export interface PlannedObject {
  readonly kind: string
  readonly name: string
  /** In the new folder. */
  readonly file: string
  readonly text: string
}

interface Reason {
  /** Empty for the whole object. */
  readonly path: string
  readonly message: string
  /** Whether the error is that of another object. */
  readonly isElsewhere: boolean
}

export interface SetAsideObject extends PlannedObject {
  /** Its errors, or what it depends on. */
  readonly reasons: readonly Reason[]
}

export interface ImportPlan {
  readonly ready: readonly PlannedObject[]
  readonly setAside: readonly SetAsideObject[]
  /** Further files: values, certificates. */
  readonly files: ReadonlyMap<string, string>
  /** `#[NAME]` that nothing gives a value. */
  readonly emptyValues: readonly string[]
  readonly valueCount: number
  /** As `NAME/KEY`: those of the objects that are ready, and the texts of those that only set-aside objects name. */
  readonly secrets: ReadonlyMap<string, { readonly text: string | undefined }>
  /** What serves applications that were behind the reverse proxy, with the files that say how. */
  readonly replacements: readonly { readonly what: string; readonly files: readonly string[] }[]
  /** What no message may show. */
  readonly secretTexts: readonly string[]
  readonly warnings: number
  /** Warnings about names of groups that match no one, with their places. */
  readonly groupNames: readonly { readonly place: string; readonly message: string }[]
  /** Errors that belong to no object. */
  readonly problems: readonly string[]
}

interface PlanOptions {
  /** The new folder. */
  readonly folder: string
  readonly withSecrets: boolean
}

const secretRounds = 4
/** A shorter text is likely to be part of other words. */
const shortestHidden = 4
/** A value that the gateway itself has. */
const ownAddress = 'GATEHOUSE_URL'

/** Loads what was found as it would be written, and sets aside what has errors until nothing has. */
export async function planImport(source: OpenUnisonSource, { folder, withSecrets }: PlanOptions): Promise<ImportPlan> {
  const values = readValues(source.values)
  const lookups = new Map<string, { readonly text: string | undefined }>()
  const found = new Map<string, { readonly text: string }>()
  const secretTexts = new Set<string>()
  const lookUp = (name: string, key: string): string | undefined => {
    const text = withSecrets ? source.secrets(name, key) : undefined
    lookups.set(`${name}/${key}`, { text })
    if (text !== undefined) found.set(`${name}/${key}`, { text })
    for (const line of text?.split('\n') ?? []) if (line.trim().length >= shortestHidden) secretTexts.add(line.trim())
    return text
  }
  let ready = withFiles([...source.objects, ...values.tokenService])
  const written = valueFiles(ready, values)
  const load = async (): Promise<LoadResult> => {
    for (let round = 1; ; round++) {
      lookups.clear()
      const files = [...ready.map(({ file, text }) => ({ name: file, text })), ...yamlFiles(written.files)]
      const result = buildConfiguration(
        {
          files: files.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
          keys: new Map(Array.from(values.certificates.keys(), (name) => [name, 'imported'])),
          problems: [],
        },
        { folder, catalog, environment: {}, strictSecrets: false, clusterSecrets: lookUp },
      )
      if (!withSecrets || round >= secretRounds || !(await source.fetchSecrets())) return result
    }
  }
  const setAside: SetAsideObject[] = []
  // Objects that were set aside may be what others had warnings about, so this is repeated until nothing changes.
  for (;;) {
    const result = await load()
    const errors = result.issues.filter(({ level }) => level === 'error')
    const causes = new Map(result.found.flatMap(({ file, cause }) => (cause === undefined ? [] : [[file, cause]])))
    const judged = ready.map((object) => {
      const own = errors.filter((issue) => issue.file === object.file)
      return { ...object, reasons: reasonsOf(own, causes.get(object.file), setAside.length > 0) }
    })
    const next = ready.filter((_, i) => judged[i]?.reasons.length === 0)
    const links = next.length === ready.length ? linksToNothing(ready, setAside, values.texts) : []
    if (links.length > 0) {
      setAside.push(...links)
      ready = ready.filter(({ file }) => !links.some((link) => link.file === file))
      continue
    }
    if (next.length === ready.length) {
      const replacements = replacementsFor([...ready, ...setAside], values)
      return {
        ready,
        setAside,
        ...written,
        files: new Map([...written.files, ...replacements.flatMap(({ files }) => files)]),
        replacements: replacements.map(({ what, files }) => ({ what, files: files.map(([file]) => file) })),
        secrets: new Map([...lookups, ...found]),
        secretTexts: Array.from(secretTexts),
        warnings: result.issues.length - errors.length,
        groupNames: result.issues.flatMap(({ file, path, message }) => {
          const object = ready.find((one) => one.file === file)
          if (object === undefined || !message.startsWith(unreturnedName)) return []
          return [{ place: `${object.kind} ${object.name}: ${path}`, message }]
        }),
        problems: errors.map(({ file, message }) => `${file}: ${message}`),
      }
    }
    setAside.push(...judged.filter(({ reasons }) => reasons.length > 0))
    ready = next
  }
}

function reasonsOf(
  errors: readonly LocatedIssue[],
  cause: { readonly object: string; readonly at?: string | undefined } | undefined,
  isElsewhere: boolean,
): Reason[] {
  if (errors.length === 0 && cause !== undefined) {
    const state = cause.at === undefined ? 'does not exist' : 'is set aside'
    return [{ path: '', message: `depends on ${cause.object}, which ${state}`, isElsewhere: true }]
  }
  return errors.map(({ path, message }) => ({
    path,
    message: isElsewhere ? `without the objects that are set aside: ${message}` : message,
    isElsewhere,
  }))
}

/** Links of the portal to applications that do not answer here. */
function linksToNothing(
  ready: readonly PlannedObject[],
  setAside: readonly SetAsideObject[],
  values: ReadonlyMap<string, string>,
): SetAsideObject[] {
  const urls = importedUrls([...ready, ...setAside], values)
  const aside = new Set(setAside.flatMap(({ kind, name }) => (kind === 'Application' ? [name] : [])))
  return ready.flatMap((object) => {
    if (object.kind !== 'PortalUrl') return []
    const url = applicationOfLink(object, urls, values)
    if (url === undefined || (url.proxied === undefined && !aside.has(url.application))) return []
    const message = `leads to the Application "${url.application}", which is not served. Change the url to what serves it instead, and move this file back`
    return [{ ...object, reasons: [{ path: 'spec.url', message, isElsewhere: true }] }]
  })
}

function replacementsFor(objects: readonly PlannedObject[], { texts, installation }: FoundValues) {
  const made = proxyReplacements(importedUrls(objects, texts), installation)
  return Array.from(made.values(), ({ what, files }) => ({
    what,
    files: Object.entries(files).map(([name, text]): [string, string] => [`${insteadFolder}/${name}`, text]),
  }))
}

const yamlFiles = (files: ReadonlyMap<string, string>): { name: string; text: string }[] =>
  Array.from(files, ([name, text]) => ({ name, text })).filter(({ name }) => name.endsWith('.yaml'))

/** Each object in a file of its own: the folder has the kind's name, the file that of the object. */
function withFiles(objects: readonly ImportedObject[]): PlannedObject[] {
  const counts = new Map<string, number>()
  return objects.map((object) => {
    const folder =
      configResources.find(({ kind }) => kind.kind === object.kind)?.plural ??
      object.kind
        .toLowerCase()
        .replaceAll(/[^a-z0-9]/g, '-')
        .slice(0, 100)
    const stem =
      object.name
        .replaceAll(/[^A-Za-z0-9.-]/g, '-')
        .replace(/^[.-]+/, '')
        .slice(0, 200) || 'unnamed'
    const path = `${folder}/${stem}`
    // Some file systems ignore case.
    const count = (counts.get(path.toLowerCase()) ?? 0) + 1
    counts.set(path.toLowerCase(), count)
    // "_" can't be part of a name in a cluster, so no other object has this file.
    return { ...object, file: count === 1 ? `${path}.yaml` : `${path}_${count}.yaml` }
  })
}

interface FoundValues {
  readonly texts: ReadonlyMap<string, string>
  /** Names whose value is a key of the secret. */
  readonly secretNames: ReadonlyMap<string, string>
  /** The block `sts`, as an object of its own. */
  readonly tokenService: readonly ImportedObject[]
  /** Trusted certificates, PEM. */
  readonly certificates: ReadonlyMap<string, string>
  /** The name of the OpenUnison object. */
  readonly installation: string
}

/** Own values documents win over those of OpenUnison, and the first of several over later ones. */
function readValues(texts: readonly string[]): FoundValues {
  const [own, fallback] = [new Map<string, string>(), new Map<string, string>()]
  const secretNames = new Map<string, string>()
  const tokenService: ImportedObject[] = []
  const certificates = new Map<string, string>()
  let installation = ''
  for (const text of texts) {
    const [yaml] = readYaml(text).documents
    const top: unknown = parse(text)
    if (yaml === undefined || !isJsonObject(top)) continue
    const read = readOpenUnisonValues(new ConfigDocument('values', yaml), top)
    for (const [name, value] of read?.values ?? []) if (!fallback.has(name)) fallback.set(name, value.text)
    for (const name of read?.secrets.names ?? []) secretNames.set(name, read?.secrets.secretName ?? '')
    for (const [name, pem] of certificatesOf(top)) certificates.set(name, pem)
    if (top['kind'] === openUnisonKind) {
      const { metadata } = top
      installation ||= isJsonObject(metadata) ? String(metadata['name']) : ''
      continue
    }
    for (const name of Object.keys(top)) {
      const scalar = yaml.scalarText([name])
      if (scalar !== undefined && !own.has(name)) own.set(name, scalar)
    }
    const { sts } = top
    if (sts !== undefined) tokenService.push({ kind: 'values', name: 'sts', text: yamlText(new Document({ sts })) })
  }
  return { texts: new Map([...fallback, ...own]), secretNames, tokenService, certificates, installation }
}

/** Of the `OpenUnison` object, or of the values of its charts. */
function certificatesOf(top: JsonObject): [name: string, pem: string][] {
  const { spec, trusted_certs: ofChart } = top
  const store = isJsonObject(spec) ? spec['key_store'] : undefined
  const ofObject = isJsonObject(store) ? store['trusted_certificates'] : undefined
  return [ofObject, ofChart].flatMap((list) =>
    (Array.isArray(list) ? list : []).flatMap((entry): [string, string][] => {
      if (!isJsonObject(entry)) return []
      const { name, pem_data: data, pem_b64: encoded } = entry
      const text = data ?? encoded
      if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$/.test(name)) return []
      const pem = typeof text === 'string' ? Buffer.from(text, 'base64').toString('utf8') : ''
      return isCertificate(pem) ? [[name, pem]] : []
    }),
  )
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

/** The values of the names that the objects have. */
function valueFiles(
  objects: readonly PlannedObject[],
  { texts, secretNames, certificates }: FoundValues,
): Pick<ImportPlan, 'files' | 'emptyValues' | 'valueCount'> {
  const values: Record<string, string> = {}
  const emptyValues: string[] = []
  const secretValues = new Map<string, string[]>()
  for (const [name, hasDefault] of Array.from(namesIn(objects)).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const text = texts.get(name)
    const secret = secretNames.get(name)
    if (text !== undefined) values[name] = text
    else if (secret !== undefined) secretValues.set(secret, [...(secretValues.get(secret) ?? []), name])
    else if (!hasDefault && name !== ownAddress) emptyValues.push(name)
  }
  const files = new Map<string, string>()
  if (Object.keys(values).length + emptyValues.length > 0) {
    const document = new Document(values)
    document.commentBefore = ' The values of #[NAME] in the objects of this folder.'
    // An empty value could open a rule, so that the loader must see that there is none.
    if (emptyValues.length > 0) document.comment = [' No value was found for:', ...emptyValues].join('\n ')
    files.set('values.yaml', yamlText(document))
  }
  for (const [secret, names] of secretValues) {
    const spec = { secret_data: names, source_secret: secret }
    const object = { apiVersion: 'openunison.tremolo.io/v6', kind: openUnisonKind, metadata: { name: secret }, spec }
    const document = new Document(object)
    document.commentBefore = ` The values of ${names.map((name) => `#[${name}]`).join(', ')} are keys of this secret.`
    const stem = secret.replaceAll(/[^A-Za-z0-9-]/g, '-').slice(0, 200)
    const isTaken = (name: string): boolean =>
      Array.from(files.keys()).some((taken) => taken.toLowerCase() === name.toLowerCase())
    let file = `${stem}.yaml`
    for (let count = 2; isTaken(file); count++) file = `${stem}_${count}.yaml`
    files.set(file, yamlText(document))
  }
  for (const [name, pem] of certificates) files.set(`keys/${name}.crt`, pem)
  return { files, emptyValues, valueCount: Object.keys(values).length }
}

/** By name of a placeholder: whether it has a default wherever it occurs. */
function namesIn(objects: readonly PlannedObject[]): ReadonlyMap<string, boolean> {
  const names = new Map<string, boolean>()
  for (const { text } of objects) {
    for (const [, name = '', fallback] of text.matchAll(placeholder)) {
      names.set(name, (names.get(name) ?? true) && fallback !== undefined)
    }
  }
  return names
}
