import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { checkInserts } from '#config/build/directory-insert.ts'
import { trustNames } from '#config/build/issuer.ts'
import { buildWorkflow } from '#config/build/provisioning.ts'
import { buildSts } from '#config/build/sts.ts'
import { BuildContext, type LoadState } from '#config/build-context.ts'
import { ConfigDocument, FixedPlace } from '#config/config-document.ts'
import { readConfiguredTexts } from '#config/configured-texts.ts'
import {
  checkClaims,
  checkCycles,
  checkDuplicates,
  checkLogins,
  checkNotifiers,
  checkTrusts,
} from '#config/cross-check.ts'
import { checkCallableWorkflows, checkDataFlow } from '#config/data-flow.ts'
import { warnOfDeprecations } from '#config/deprecations.ts'
import { checkReferences, Draft, type Reference } from '#config/draft.ts'
import { kinds } from '#config/kinds.ts'
import { readYaml } from '#config/locate.ts'
import { type LocatedIssue, locateIssues } from '#config/located-issue.ts'
import { type ParsedFiles, parseFiles } from '#config/parse.ts'
import { readSchema } from '#config/schema-issues.ts'
import { certificateIn, NamedFiles, type SecretLookup, SecretSource } from '#config/secrets.ts'
import { readDirectory, type Sources } from '#config/sources/directory-source.ts'
import { type Environment, Substitution } from '#config/substitute.ts'
import { Dn } from '#identity/dn.ts'
import { isLoopbackHost } from '#kernel/address.ts'
import { type Issue, Issues, type Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { workflowSchema } from '#model/provisioning.ts'
import type { Catalog } from '#sdk/module/catalog.ts'
import type { Configuration, RestoredWorkflow, StoredWorkflow } from '#sdk/module/configuration.ts'
import type { OwnPlaces } from '#sdk/module/own-file.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import { defaultNotifier, isDefaultNotifier } from '#sdk/notifier/notifier.ts'
import { expiryKey } from '#sdk/workflow/expiry-offer.ts'

export interface LoadOptions {
  readonly folder: string
  readonly catalog: Catalog
  readonly environment: Environment
  /** Default: `secrets` in the configuration folder. */
  readonly secretsFolder?: string
  /** The address of the listener, which is the default of `#[GATEHOUSE_URL]`. Only a server has one. */
  readonly listenUrl?: string
  /** Secrets of a cluster, if the configuration comes from one. */
  readonly clusterSecrets?: SecretLookup
  /** A missing secret is an error: for a server, not for a check. */
  readonly strictSecrets?: boolean
  /** Also returns the objects, for checks that need more than the configuration contains. They take memory. */
  readonly keepObjects?: boolean
  /** The gateway's own folder, which modules must not write to. */
  readonly ownPlaces?: OwnPlaces
}

export interface LoadResult {
  /** Absent if there is an error. */
  readonly configuration?: Configuration
  /** Sorted by place. */
  readonly issues: readonly LocatedIssue[]
  /** Every object that was read, valid or not, by place. */
  readonly found: readonly FoundObject[]
  /** The objects that were read, with `keepObjects`. */
  readonly objects?: readonly LoadedObject[]
  /** Of everything that was read, valid or not. */
  readonly hash: string
}

/** An object of the configuration, without its content. */
export interface FoundObject {
  /** `values` for a document without a kind. */
  readonly kind: string
  readonly name: string | undefined
  /** Relative to the configuration folder, or `Kind/namespace/name` of an object of a cluster. */
  readonly file: string
  /** Undefined for an object of a cluster. */
  readonly line: number | undefined
  readonly errors: number
  readonly warnings: number
}

/** One object with its values substituted, and the document that knows the position of each. */
export interface LoadedObject {
  readonly kind: string
  readonly name: string | undefined
  readonly value: unknown
  readonly document: ConfigDocument
}

/** Reads a configuration folder and reports every problem. Never throws for its content. */
export async function loadConfiguration(options: LoadOptions): Promise<LoadResult> {
  return buildConfiguration(await readDirectory(options.folder), options)
}

/** The same from files already read. Its only I/O is for secrets and files that objects name; it reads no clock. */
export function buildConfiguration(sources: Sources, options: LoadOptions): LoadResult {
  const issues = new Issues()
  for (const { name, message } of sources.problems) issues.for(new FixedPlace(name)).error([], message)
  if (sources.files.length === 0 && sources.problems.length === 0) {
    const { origin } = sources
    const what = origin === undefined ? 'YAML files in this folder' : `objects in ${origin}`
    issues.for(new FixedPlace('.')).warning([], `there are no ${what}: nothing is served`)
  }
  const files = parseFiles(sources.files, issues)
  const values = withPublicUrl(collectValues(files.values, issues), options.listenUrl)
  const substitution = new Substitution(options.environment, values)
  const folder = resolve(options.folder)
  const secrets = new SecretSource(secretsFolder(options), options.environment, options.clusterSecrets)
  const ignored: { document: ConfigDocument; path: Path; since: number }[] = []
  const state: LoadState = {
    catalog: options.catalog,
    folder,
    secrets,
    files: new NamedFiles(),
    ownPlaces: options.ownPlaces,
    strictSecrets: options.strictSecrets ?? true,
    issues,
    references: [],
    draft: new Draft(),
    ignoreLater: (document, path) => ignored.push({ document, path, since: issues.list.length }),
  }
  const objects = buildObjects(files, substitution, state)
  const texts = readConfiguredTexts(objects, issues)
  warnOfDeprecations(objects, issues, (name) => ownClassName(options.catalog, name))
  checkDuplicates(files.objects, issues)
  checkClaims(state.draft.claims, issues)
  checkCycles(state.draft, issues)
  checkLogins(state.draft, issues)
  checkTrusts(state.draft, issues)
  const root = readDirectoryRoot(files.values, values, options.environment, issues)
  checkInserts(state.draft, root, issues)
  checkReferences(state.references, knownNames(files, state, sources), issues)
  checkNotifiers(state.draft, state.references, issues)
  checkAccessEnds(state.draft, state.references, issues)
  checkDataFlow(state.draft, state.references, options.catalog, issues)
  checkCallableWorkflows(state.draft, options.catalog, issues)

  const reported = issues.list.filter(
    (issue, i) =>
      !ignored.some((one) => i >= one.since && issue.document === one.document && within(issue.path, one.path)),
  )
  const hash = hashOf(sources, substitution.used, secrets.used, state.files.used)
  const located = locateIssues(reported)
  const found = findObjects(files, reported)
  const known: KnownNames = (references) => knownNames(files, { ...state, references: [...references] }, sources)
  const kept = options.keepObjects === true ? { objects } : {}
  return issues.ok
    ? {
        configuration: {
          ...finish(state, root, hash, known, options.environment[urlName] ?? values.get(urlName)),
          texts,
        },
        issues: located,
        found,
        hash,
        ...kept,
      }
    : { issues: located, found, hash, ...kept }
}

/** A short name that modules of several slots have stays as it is. */
function ownClassName({ tasks: _, ...registries }: Catalog, name: string): string {
  const found = new Set(Object.values(registries).flatMap((registry) => registry.find(name)?.className ?? []))
  const [first = name, another] = found
  return another === undefined ? first : name
}

function findObjects(files: ParsedFiles, issues: readonly Issue[]): FoundObject[] {
  const counts = new Map<unknown, { errors: number; warnings: number }>()
  for (const { document, level } of issues) {
    const count = counts.get(document) ?? { errors: 0, warnings: 0 }
    counts.set(document, count)
    count[level === 'error' ? 'errors' : 'warnings']++
  }
  const describe = (kind: string, name: string | undefined, document: ConfigDocument): FoundObject => ({
    kind,
    name,
    file: document.file,
    line: document.hasLines ? document.position([]).line : undefined,
    ...(counts.get(document) ?? { errors: 0, warnings: 0 }),
  })
  return [
    ...files.objects.map(({ kind, name, document }) => describe(kind.kind, name, document)),
    ...files.values.map((document) => describe('values', undefined, document)),
  ].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : (a.line ?? 0) - (b.line ?? 0)))
}

function buildObjects(files: ParsedFiles, substitution: Substitution, state: LoadState): LoadedObject[] {
  const objects: LoadedObject[] = []
  const read = (document: ConfigDocument, isTemplate: (path: Path) => boolean): unknown => {
    const filed = state.issues.for(document)
    const report = (path: Path, message: string) => {
      filed.error(path, message)
      state.ignoreLater(document, path)
    }
    const text = (value: string, path: Path) => (isTemplate(path) ? substitution.apply(value, path, report) : value)
    return document.yaml.toValue({ text, report })
  }
  for (const kind of kinds) {
    for (const object of files.objects) {
      if (object.kind !== kind || !object.usable) continue
      const value = read(object.document, () => true)
      kind.build(value, object.document, state)
      objects.push({ kind: kind.kind, name: object.name, value, document: object.document })
    }
  }
  for (const document of files.values) {
    const value = read(document, (path) => path[0] === 'sts')
    buildSts(value, document, state)
  }
  return objects
}

/** Names count even if the object is invalid, so that references to it are not reported. */
function knownNames(files: ParsedFiles, state: LoadState, sources: Sources): Map<ReferenceKind, Set<string>> {
  const known = new Map<ReferenceKind, Set<string>>()
  for (const { kind, name } of files.objects) {
    if (kind.referredAs === undefined || name === undefined) continue
    const names = known.get(kind.referredAs) ?? new Set()
    known.set(kind.referredAs, names.add(name))
  }
  const notifiers = [...(known.get('notifier') ?? [])]
  known.set('channel notifier', new Set(notifiers))
  if (notifiers.some((name) => isDefaultNotifier(name, notifiers))) known.get('notifier')?.add(defaultNotifier)
  known.set('org', new Set([...state.draft.orgs.values()].map(({ config }) => config.spec.uuid)))
  known.set('token endpoint', new Set(state.draft.stsEndpoints.map(({ spec }) => spec.name)))
  known.set('identity provider', new Set(state.draft.issuers.map(({ name }) => name)))
  known.set('trust of an identity provider', new Set(state.draft.issuers.flatMap(trustNames)))
  const named = state.references.flatMap(({ kind, name }) => (kind === 'key' ? [name] : []))
  const inSecrets = named.filter((name) => certificateIn(state.secrets, name) !== undefined)
  known.set('key', new Set([...sources.keys.keys(), ...inSecrets]))
  return known
}

const urlName = 'GATEHOUSE_URL'

/**
 * A values document overrides the listener's own address. If both are loopback addresses, the listener's wins: the
 * document is for commands without a listener, and `--listen` may choose another port.
 */
function withPublicUrl(values: ReadonlyMap<string, string>, listenUrl: string | undefined): Map<string, string> {
  const merged = new Map(values)
  const given = values.get(urlName)
  const isLoopback = (url: string): boolean => isLoopbackHost(URL.parse(url)?.hostname ?? '')
  if (listenUrl !== undefined && (given === undefined || (isLoopback(given) && isLoopback(listenUrl)))) {
    merged.set(urlName, listenUrl)
  }
  return merged
}

function finish(
  state: LoadState,
  directoryRoot: Dn,
  hash: string,
  known: KnownNames,
  publicUrl: string | undefined,
): Configuration {
  const { draft, folder } = state
  const configs = <T>(built: ReadonlyMap<string, { readonly config: T }>): Map<string, T> =>
    new Map(Array.from(built, ([name, { config }]) => [name, config]))
  return {
    hash,
    folder,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    applications: draft.applications.map(({ config }) => config),
    chains: configs(draft.chains),
    targets: configs(draft.targets),
    directoryRoot,
    inserts: draft.inserts.map(({ config }) => config).sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1)),
    workflows: configs(draft.workflows),
    resultGroups: draft.resultGroups,
    authorizations: draft.authorizations,
    javaScriptMappings: draft.javaScriptMappings,
    trusts: draft.trusts,
    orgs: configs(draft.orgs),
    portalUrls: draft.portalUrls,
    reports: draft.reports,
    jobs: draft.jobs,
    notifiers: draft.notifiers,
    auditSinks: draft.auditSinks,
    auditAnchors: draft.auditAnchors,
    stsEndpoints: draft.stsEndpoints,
    stsWebhook: draft.stsWebhook,
    issuers: draft.issuers,
    restoreWorkflow: (stored) => restoreWorkflow(stored, state, known),
  }
}

function hashOf(sources: Sources, ...used: readonly ReadonlyMap<string, string>[]): string {
  const sorted = (map: ReadonlyMap<string, string>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  const files = sources.files.map(({ name, text }) => [name, text])
  const content = [files, sources.problems, ...[sources.keys, ...used].map(sorted)]
  return createHash('sha256').update(JSON.stringify(content)).digest('base64url')
}

export const secretsFolder = (options: Pick<LoadOptions, 'folder' | 'secretsFolder'>): string =>
  options.secretsFolder === undefined ? join(resolve(options.folder), 'secrets') : resolve(options.secretsFolder)

const within = (path: Path, outer: Path): boolean => outer.every((step, i) => path[i] === step)

/** The scalars of all values documents, by name. Two documents may not define the same name. */
function collectValues(documents: readonly ConfigDocument[], issues: Issues): Map<string, string> {
  const values = new Map<string, string>()
  const places = new Map<string, string>()
  for (const document of documents) {
    const filed = issues.for(document)
    const top = document.yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
    for (const [name, value] of Object.entries(isJsonObject(top) ? top : {})) {
      if (name !== 'sts' && typeof value === 'object' && value !== null) {
        const hint = suggestion(name, ['sts'])
        filed.error([name], `expected a value for #[${name}], found a block; the only block is "sts"${hint}`)
        continue
      }
      const earlier = places.get(name)
      if (earlier !== undefined) filed.error([name], `"${name}" is given twice (first in ${earlier})`)
      places.set(name, earlier ?? document.at([name]))
      if (name !== 'sts') values.set(name, document.yaml.scalarText([name]) ?? '')
    }
  }
  return values
}

/** The value that names the root of the virtual directory; as `#[directoryRoot]` it can be used like any other value. */
const directoryRootValue = 'directoryRoot'

/** The default root of the virtual directory, as in every configuration of OpenUnison. */
const defaultRoot = 'o=Tremolo'

/** The environment wins, as for every value. An invalid or empty name is reported at its place. */
function readDirectoryRoot(
  documents: readonly ConfigDocument[],
  values: ReadonlyMap<string, string>,
  environment: Environment,
  issues: Issues,
): Dn {
  const given = environment[directoryRootValue] ?? values.get(directoryRootValue)
  if (given === undefined) return Dn.parse(defaultRoot)
  const report = (message: string): Dn => {
    const said = documents.find(({ yaml }) => yaml.scalarText([directoryRootValue]) !== undefined)
    if (said === undefined) issues.for(new FixedPlace('.')).error([directoryRootValue], message)
    else issues.for(said).error([directoryRootValue], message)
    return Dn.parse(defaultRoot)
  }
  try {
    const root = Dn.parse(given)
    return root.rdns.length === 0 ? report('the root of the directory needs a name, such as o=Tremolo') : root
  } catch (error) {
    return report(`"${given}" is not a name: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Warns if requesters choose an expiry date that nothing applies, and if a task reads one that no one can choose. */
function checkAccessEnds({ workflows }: Draft, references: readonly Reference[], issues: Issues): void {
  const calls = callsOf(workflows, references)
  const offered = new Set<string>()
  for (const [name, { config, document }] of workflows) {
    if (config.accessEnds === undefined) continue
    const reached = reachedFrom(name, calls)
    for (const one of reached) offered.add(one)
    const isRead = [...reached].some((one) => workflows.get(one)?.config.parameters.includes(expiryKey))
    if (isRead) continue
    const message = `people choose when the access ends, but no task reads it: give one "expiresAt: $${expiryKey}$", or name ${expiryKey} among the parameters`
    issues.for(document).warning(['spec', 'accessEnds'], message)
  }
  for (const [name, { document, readsEndAt, declaresEnd }] of workflows) {
    if (readsEndAt === undefined || declaresEnd || offered.has(name)) continue
    const message = `$${expiryKey}$ is empty unless a caller passes it: neither this workflow nor one that calls it has accessEnds`
    issues.for(document).warning(readsEndAt, message)
  }
}

/** By workflow: the workflows that it calls or starts by name. */
function callsOf(workflows: Draft['workflows'], references: readonly Reference[]): Map<string, string[]> {
  const names = new Map(Array.from(workflows, ([name, { document }]) => [document, name]))
  const calls = new Map<string, string[]>()
  for (const { kind, name, document } of references) {
    const caller = kind === 'workflow' ? names.get(document) : undefined
    if (caller !== undefined) calls.set(caller, [...(calls.get(caller) ?? []), name])
  }
  return calls
}

/** Includes itself. */
function reachedFrom(start: string, calls: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set([start])
  for (const name of reached) for (const called of calls.get(name) ?? []) reached.add(called)
  return reached
}

/** Called with the names that the stored workflow refers to, so that missing ones are found. */
type KnownNames = (references: readonly Reference[]) => ReadonlyMap<ReferenceKind, ReadonlySet<string>>

/**
 * Reads the definition of a stored run with the modules and objects of the current configuration. Reads only files
 * that tasks name, and reports every problem instead of throwing.
 */
function restoreWorkflow(stored: StoredWorkflow, state: LoadState, known: KnownNames): RestoredWorkflow {
  const { name, hash, source } = stored
  const issues = new Issues()
  const { documents, problems } = readYaml(source)
  const [yaml] = documents
  if (yaml === undefined || documents.length > 1 || problems.length + yaml.problems.length > 0) {
    return { problems: ['its stored text is damaged'] }
  }
  const document = new ConfigDocument(`stored workflow ${name}`, yaml)
  const own: LoadState = { ...state, issues, references: [], draft: new Draft(), ignoreLater: () => {} }
  const filed = issues.for(document)
  const value = yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
  const spec = readSchema(workflowSchema, isJsonObject(value) ? value['spec'] : undefined, ['spec'], filed)
  if (spec !== undefined) {
    buildWorkflow(spec, new BuildContext(own, document, name, undefined))
    checkReferences(own.references, known(own.references), issues)
  }
  const config = own.draft.workflows.get(name)?.config
  const errors = issues.list.filter(({ level }) => level === 'error')
  if (config === undefined || errors.length > 0) {
    return { problems: errors.map(({ path, message }) => `${path.join('.')}: ${message}`) }
  }
  return { config: { ...config, hash, source } }
}
