import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { checkInserts } from '#config/build/directory-insert.ts'
import { kinds, unnamed } from '#config/build/kinds.ts'
import {
  checkClaims,
  checkClients,
  checkCycles,
  checkDuplicates,
  checkLogins,
  checkLogouts,
  checkNotifiers,
  checkPasswords,
  checkProfiles,
  checkResourceTypes,
  checkTrusts,
  dropOpenUnisonPages,
} from '#config/checks/cross-check.ts'
import { checkCallableWorkflows, checkDataFlow } from '#config/checks/data-flow.ts'
import { checkGroupNames } from '#config/checks/group-names.ts'
import type { Catalog } from '#config/configuration/catalog.ts'
import type { ApplicationConfig, Configuration } from '#config/configuration/configuration.ts'
import type { LoadState } from '#config/context/build-context.ts'
import { type ConfigDocument, FixedPlace, PartPlace, type Place } from '#config/context/config-document.ts'
import { checkReferences, Draft, missingReferences, type Reference } from '#config/context/draft.ts'
import { HiddenValues } from '#config/context/hidden-values.ts'
import { formatIssue, type LocatedIssue, locateIssues } from '#config/context/located-issue.ts'
import { NamedFiles, type SecretLookup, SecretSource } from '#config/context/secrets.ts'
import { type Environment, Substitution, urlName } from '#config/context/substitute.ts'
import { readDirectory, type Sources } from '#config/sources/folder-documents.ts'
import { type OpenUnisonValues, openUnisonKind, readOpenUnisonValues } from '#config/sources/openunison-values.ts'
import { holdsValues, mayHoldValues, noKind, type ParsedFiles, parseFiles } from '#config/sources/parse.ts'
import { type KnownObjects, type StoredObjects, withStored } from '#config/sources/stored-objects.ts'
import { buildSts } from '#config/sts/build-sts.ts'
import { Dn } from '#identity/dn.ts'
import { isLoopbackHost } from '#kernel/address.ts'
import { type Issue, Issues, type Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { SecretValues } from '#kernel/secret-values.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { OwnPlaces } from '#sdk/host/own-file.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import { expiryKey } from '#sdk/workflow/expiry-offer.ts'
import { builtInFile, withBuiltIn } from './built-in-objects.ts'
import { checkBuiltInTargets } from './built-in-targets.ts'
import { chainOfAddress } from './chain-of-address.ts'
import { closedApplication } from './closed-parts.ts'
import { readConfiguredTexts } from './configured-texts.ts'
import { namesOf, type Providers, providersOf } from './providers.ts'
import { servedConfiguration } from './served-configuration.ts'
import {
  type Cause,
  concernedBy,
  type Dependencies,
  endpointKind,
  type FoundObject,
  findCauses,
  type ObjectNode,
} from './set-aside.ts'

export interface LoadOptions {
  readonly folder: string
  readonly catalog: Catalog
  readonly environment: Environment
  /** Default: `secrets` in the configuration folder. */
  readonly secretsFolder?: string
  /** The address of the listener, which is the default of `#[GATEHOUSE_URL]`. Only a server has one. */
  readonly listenUrl?: string | undefined
  /** Secrets of a cluster, if the configuration comes from one. */
  readonly clusterSecrets?: SecretLookup
  /** A missing secret is an error: for a server, not for a check. */
  readonly strictSecrets?: boolean
  /** Also returns the objects, for checks that need more than the configuration contains. They take memory. */
  readonly keepObjects?: boolean
  /** The gateway's own folder, which modules must not write to. */
  readonly ownPlaces?: OwnPlaces | undefined
  /** Gets every value of a secret or of the environment that the configuration uses. */
  readonly secretValues?: SecretValues
  /** Objects of the database, which only a server knows. */
  readonly stored?: KnownObjects
}

export interface LoadResult {
  /** Everything that can be served. Absent if there is an error that concerns the whole, such as a wrong value. */
  readonly configuration?: Configuration
  /** Sorted by place. */
  readonly issues: readonly LocatedIssue[]
  /** Every object that was read, served or not, by place. */
  readonly found: readonly FoundObject[]
  readonly scripts: ScriptCount
  /** The objects that were read, with `keepObjects`. */
  readonly objects?: readonly LoadedObject[] | undefined
  /** Of everything that was read, valid or not. */
  readonly hash: string
  /**
   * The same without the objects at these positions, which have these errors although their YAML has none. Undefined if
   * there are no such objects, or if they are set aside already.
   */
  without?(failures: readonly CreationFailure[]): LoadResult | undefined
  /** What was read, if this is a part of it by `without`. */
  readonly origin?: LoadResult | undefined
  /** The errors that were given to `without`, with their places. */
  readonly notCreated?: readonly string[] | undefined
}

export interface CreationFailure {
  readonly at: string
  readonly message: string
}

/** The inline scripts of a configuration. */
export interface ScriptCount {
  readonly total: number
  readonly served: number
  /** Java types and members that scripts use and that aren't served, the most frequent first. */
  readonly unserved: readonly { readonly name: string; readonly times: number }[]
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
  const unread = reportUnread(sources, issues)
  const stored = options.stored?.list ?? []
  const parsed = withStored(parseFiles(sources.files, issues), stored, issues)
  const files = withBuiltIn({ ...parsed, unread: [...parsed.unread, ...unread] }, sources.files, issues)
  const folder = resolve(options.folder)
  const hidden = new HiddenValues(options.secretValues ?? new SecretValues())
  const secrets = new SecretSource(secretsFolder(options), options.environment, hidden.values, options.clusterSecrets)
  const given = collectValues(files.values, secrets, issues)
  const values = withPublicUrl(given.values, options.listenUrl)
  const substitution = new Substitution(options.environment, values, hidden, {
    missingSecrets: given.missingSecrets,
    secretNames: given.secretNames,
    unread: files.unread.find(mayHoldValues)?.place.file,
  })
  const ignored: IgnoredPlace[] = []
  const state: LoadState = {
    catalog: options.catalog,
    folder,
    secrets,
    hidden,
    files: new NamedFiles(),
    ownPlaces: options.ownPlaces,
    strictSecrets: options.strictSecrets ?? true,
    issues,
    references: [],
    scripts: [],
    draft: new Draft(),
    chainAt: (address) => chainOfAddress(files.objects, (text) => substitution.apply(text, [], () => {}), address),
    shownValue: (name) => substitution.shownValue(name),
    ignoreLater: (document, path) => ignored.push({ document, path, since: issues.list.length }),
  }
  const { objects, raw } = buildObjects(files, substitution, state)
  const texts = readConfiguredTexts(objects, issues)
  checkObjects(files, state)
  const root = readDirectoryRoot(files.values, values, options.environment, hidden, issues)
  checkInserts(state.draft, root, issues)
  const providers = providersOf(files, objects, state, sources)
  checkTogether(providers, namesOf(files, 'target'), options.environment, state)
  const isIgnored = (issue: Issue, i: number): boolean =>
    ignored.some((one) => i >= one.since && issue.document === one.document && within(issue.path, one.path))
  const reserved = reservedApplications(sources, substitution, options.catalog)
  const hash = hashOf(sources, stored, substitution.used, secrets.used, state.files.used)
  const conclusion = new Conclusion({
    state,
    files,
    raw,
    root,
    hash,
    providers,
    environment: options.environment,
    objects: options.keepObjects === true ? objects : undefined,
    reported: issues.list.filter((issue, i) => !isIgnored(issue, i)),
    reserved,
    publicUrl: options.environment[urlName] ?? values.get(urlName),
    texts,
  })
  return conclusion.of([])
}

/** A place whose later issues have a cause that is already reported. */
interface IgnoredPlace {
  readonly document: ConfigDocument
  readonly path: Path
  /** The number of issues before. */
  readonly since: number
}

/** The files that can't be read, and the absence of any. */
function reportUnread(sources: Sources, issues: Issues): ObjectNode[] {
  const unread = sources.problems.map(({ name, message, whole }) => {
    const concerns = whole === true || holdsValues(name) ? ('everything' as const) : undefined
    const place = new FixedPlace(name, undefined, undefined, concerns)
    issues.for(place).error([], message)
    return { place, kind: 'file', name: undefined }
  })
  if (sources.files.length === 0 && sources.problems.length === 0) {
    const { origin } = sources
    const what = origin === undefined ? 'YAML files in this folder' : `objects in ${origin}`
    issues.for(new FixedPlace('.')).warning([], `there are no ${what}: nothing is served`)
  }
  return unread
}

/** Each object for itself, and those of one kind with each other. */
function checkObjects(files: ParsedFiles, { draft, issues }: LoadState): void {
  checkDuplicates(files.objects, draft, issues)
  checkClaims(draft, issues)
  checkCycles(draft, issues)
  checkLogins(draft, issues)
  checkLogouts(draft, issues)
  dropOpenUnisonPages(draft, issues)
  checkProfiles(draft, issues)
  checkTrusts(draft, issues)
  checkGroupNames(draft, issues)
}

/** What objects need of each other. */
function checkTogether(
  providers: Providers,
  targets: ReadonlySet<string>,
  environment: Environment,
  state: LoadState,
): void {
  const { catalog, draft, references, issues } = state
  checkReferences(references, (kind) => namesBy(providers, kind), issues)
  checkBuiltInTargets(state, targets, environment, issues)
  checkNotifiers(draft, references, issues)
  checkPasswords(draft, issues)
  checkResourceTypes(draft, references, issues)
  checkClients(draft, issues)
  checkAccessEnds(draft, references, issues)
  checkDataFlow(draft, references, catalog, issues)
  checkCallableWorkflows(draft, catalog, issues)
}

const namesBy = (providers: Providers, kind: ReferenceKind): ReadonlySet<string> => new Set(providers(kind).keys())

/** Routes give an address to the application that is served, if there is one. */
function reservedApplications(
  sources: Sources,
  substitution: Substitution,
  { filters }: Pick<Catalog, 'filters'>,
): ApplicationConfig[] {
  return parseFiles(sources.reserved ?? [], new Issues()).objects.flatMap((object) =>
    object.kind.kind === 'Application'
      ? [
          closedApplication({
            object,
            value: readBroken(object.document, substitution),
            reason: 'its place in set-aside/',
            mayPass: false,
            filters,
          }),
        ]
      : [],
  )
}

interface LoadedParts {
  readonly state: LoadState
  readonly files: ParsedFiles
  /** The content of every object, even of one with invalid YAML. */
  readonly raw: ReadonlyMap<ConfigDocument, unknown>
  readonly root: Dn
  readonly hash: string
  readonly providers: Providers
  readonly environment: Environment
  /** Undefined if no one needs them. */
  readonly objects: readonly LoadedObject[] | undefined
  /** The issues whose cause is not already reported. */
  readonly reported: readonly Issue[]
  readonly reserved: readonly ApplicationConfig[]
  readonly publicUrl: string | undefined
  readonly texts: ConfiguredTexts
}

/** What follows from everything that was read: the objects that can be served, and why others can't. */
class Conclusion {
  readonly #parts: LoadedParts
  readonly #endpoints: readonly PartPlace[]
  readonly #dependencies: Dependencies
  /** Places with values that all objects may use. */
  readonly #shared: ReadonlySet<Place>
  #found: Positions | undefined

  constructor(parts: LoadedParts) {
    const { files, state } = parts
    this.#parts = parts
    this.#endpoints = state.draft.stsEndpoints.map(({ place }) => place)
    this.#dependencies = dependenciesOf(parts, this.#endpoints)
    this.#shared = new Set<Place>([
      ...files.values,
      ...files.unread.flatMap(({ place, kind }) => (kind === noKind && holdsValues(place.file) ? [place] : [])),
    ])
  }

  #positions(): Positions {
    this.#found ??= new Positions(this.#dependencies.nodes)
    return this.#found
  }

  /** With errors of objects that their YAML does not have. `origin` is the result without them. */
  of(later: readonly Issue[], origin?: LoadResult): LoadResult {
    const { state, hash, objects, reported } = this.#parts
    const { issues, hidden, scripts } = state
    const { nodes } = this.#dependencies
    const shown = [...reported, ...later]
    const located = (list: readonly Issue[]) =>
      locateIssues(list.map((issue) => ({ ...issue, message: hidden.messageOf(issue) })))
    const result: LoadResult = {
      issues: located(shown),
      notCreated: located(later).map(formatIssue),
      found: findObjects(nodes, shown, this.#causesIn(shown, later), (issue) => this.#concernedBy(issue)),
      scripts: countScripts(scripts),
      hash,
      objects,
      origin,
    }
    const isWhole = (issue: Issue): boolean => this.#concernedBy(issue) === 'everything'
    if (issues.list.some((issue) => issue.level === 'error' && isWhole(issue))) return result
    // Also without the objects whose errors are not reported, because a check tolerates their cause.
    const aside = this.#causesIn([...issues.list, ...later], later)
    const without = (self: LoadResult, failures: readonly CreationFailure[]): LoadResult | undefined => {
      const errors = new Map<Place, Issue>()
      for (const { at, message } of failures) {
        const document = this.#positions().find(at)
        if (document === undefined || aside.has(document) || errors.has(document)) continue
        // Only the token service is made of values documents.
        errors.set(document, { level: 'error', path: this.#shared.has(document) ? ['sts'] : [], message, document })
      }
      return errors.size === 0 ? undefined : this.of([...later, ...errors.values()], origin ?? self)
    }
    return {
      ...result,
      configuration: this.#served(aside),
      without(failures) {
        return without(this, failures)
      },
    }
  }

  #served(aside: ReadonlyMap<Place, Cause>): Configuration {
    const { reserved, publicUrl, texts } = this.#parts
    const served = servedConfiguration({ ...this.#parts, aside })
    return { ...served, applications: [...served.applications, ...reserved], publicUrl, texts }
  }

  #concernedBy(issue: Issue): Place | 'everything' {
    return concernedBy(issue, this.#shared, this.#endpoints)
  }

  #causesIn(list: readonly Issue[], later: readonly Issue[]): ReadonlyMap<Place, Cause> {
    const errors = list.flatMap((issue) => {
      const place = this.#concernedBy(issue)
      return issue.level === 'error' && place !== 'everything' ? [[place, issue] as const] : []
    })
    return findCauses(this.#dependencies, errors, later, this.#parts.state.hidden)
  }
}

function dependenciesOf({ files, state, providers }: LoadedParts, endpoints: readonly PartPlace[]): Dependencies {
  const known = (kind: ReferenceKind): ReadonlySet<string> => namesBy(providers, kind)
  return {
    nodes: [
      ...files.objects.map(({ kind, name, document }) => ({ kind: kind.kind, name, place: document })),
      ...files.values.map((place) => ({ kind: 'values', name: undefined, place })),
      ...state.draft.stsEndpoints.map(({ name = unnamed, place }) => ({
        kind: endpointKind,
        name: state.hidden.nameOf(name),
        place,
      })),
      ...files.unread,
    ],
    dependents: dependentsOf(state, providers),
    missing: missingReferences(state.references, known).flatMap(({ kind, name, document, path, absent }) =>
      absent === 'error' ? [{ kind, name, place: ownerOf(document, path, endpoints) }] : [],
    ),
  }
}

/** The paths of an endpoint whose positions its modules have. Others in the block are not those of one endpoint. */
const endpointParts: readonly Path[] = [[], ['path'], ['issuer']]

/** The place that can't be used without what is referred to here. */
const ownerOf = (document: ConfigDocument, path: Path, parts: readonly PartPlace[]): Place =>
  parts.find((part) => part.contains(document, path)) ?? document

/** Finds the place of the object that has a position, as `Place.at` writes it. */
class Positions {
  readonly #parts = new Map<string, Place>()
  readonly #withoutLines = new Map<string, Place>()
  /** By file, the last ones first. */
  readonly #lines = new Map<string, { readonly line: number; readonly place: Place }[]>()

  constructor(nodes: readonly ObjectNode[]) {
    for (const { place } of nodes) {
      if (place instanceof PartPlace) {
        if (place.hasLines) for (const path of endpointParts) this.#parts.set(place.at(path), place)
      } else if (place.hasLines) {
        const places = this.#lines.get(place.file) ?? []
        this.#lines.set(place.file, places)
        places.push({ line: place.position([]).line, place })
      } else {
        this.#withoutLines.set(place.file, place)
      }
    }
    for (const places of this.#lines.values()) places.sort((a, b) => b.line - a.line)
  }

  find(at: string): Place | undefined {
    const [, file = at, line] = /^(.*?):(\d+):\d+(?: .*)?$/.exec(at) ?? []
    return (
      this.#parts.get(at) ??
      this.#lines.get(file)?.find((one) => one.line <= Number(line))?.place ??
      this.#withoutLines.get(at) ??
      this.#withoutLines.get(at.split(' ', 1)[0] ?? at)
    )
  }
}

function countScripts(scripts: LoadState['scripts']): ScriptCount {
  const uses = new Map<string, number>()
  for (const use of scripts.flatMap((unserved) => unserved ?? [])) uses.set(use, (uses.get(use) ?? 0) + 1)
  const unserved = [...uses].map(([name, times]) => ({ name, times })).sort((a, b) => b.times - a.times)
  return { total: scripts.length, served: scripts.filter((found) => found?.length === 0).length, unserved }
}

function findObjects(
  nodes: readonly ObjectNode[],
  issues: readonly Issue[],
  causes: ReadonlyMap<Place, Cause>,
  concerned: (issue: Issue) => Place | 'everything',
): FoundObject[] {
  const counts = new Map<unknown, { errors: number; warnings: number }>()
  for (const issue of issues) {
    const { document, level } = issue
    const place = concerned(issue)
    const owner = place === 'everything' ? document : place
    const count = counts.get(owner) ?? { errors: 0, warnings: 0 }
    counts.set(owner, count)
    count[level === 'error' ? 'errors' : 'warnings']++
  }
  return nodes
    .flatMap(({ kind, name, place }): FoundObject[] => {
      if (place.file === builtInFile) return []
      const count = counts.get(place) ?? { errors: 0, warnings: 0 }
      const isObject = kinds.some((one) => one.kind === kind) || kind === 'values' || kind === endpointKind
      if (!isObject && count.errors === 0) return []
      const cause = causes.get(place)
      const line = place.hasLines ? place.position([]).line : undefined
      return [{ kind, name, file: place.file, line, ...count, cause }]
    })
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : (a.line ?? 0) - (b.line ?? 0)))
}

function buildObjects(files: ParsedFiles, substitution: Substitution, state: LoadState) {
  const objects: LoadedObject[] = []
  const raw = new Map<ConfigDocument, unknown>()
  const read = (document: ConfigDocument, decides: typeof decidesAccess, isTemplate = (_: Path) => true): unknown => {
    const filed = state.issues.for(document)
    const report = (path: Path, message: string) => {
      filed.error(path, message)
      state.ignoreLater(document, path)
    }
    const unset = (path: Path, message: string) => {
      if (decides(path, document) && !namesSecret(path))
        report(path, `${message}, and a value is required here, because it controls access`)
      else filed.warning(path, `${message}, so it is empty`)
    }
    const text = (value: string, path: Path) => {
      if (!isTemplate(path)) return value
      const unread = substitution.unreadValue(value)
      if (unread !== undefined) {
        report(path, unread)
        return value
      }
      const missing = substitution.missingSecret(value)
      if (missing === undefined) return substitution.apply(value, path, unset, document)
      filed[state.strictSecrets ? 'error' : 'warning'](path, missing)
      state.ignoreLater(document, path)
      return value
    }
    return document.yaml.toValue({ text, report })
  }
  for (const kind of kinds) {
    for (const object of files.objects) {
      if (object.kind !== kind) continue
      const decides = accessKinds.has(kind.kind) ? () => true : decidesAccess
      const value = object.usable ? read(object.document, decides) : readBroken(object.document, substitution)
      raw.set(object.document, value)
      if (!object.usable) continue
      kind.build(value, object.document, state)
      objects.push({ kind: kind.kind, name: object.name, value, document: object.document })
    }
  }
  for (const document of files.values) {
    const isTokenService = (path: Path): boolean => path[0] === 'sts'
    const value = read(document, isTokenService, isTokenService)
    buildSts(value, document, state)
  }
  return { objects, raw }
}

/** Kinds of which every part can decide who gets in. */
const accessKinds: ReadonlySet<string> = new Set([
  'AuthenticationChain',
  'AuthenticationMechanism',
  'CustomAuthorization',
  'GroupMetaData',
  'NamespaceGroupMetaData',
  'Trust',
])

/** Charts end the names of secrets with a value that may be unset. A name that no secret has is an error of its own. */
const namesSecret = (path: Path): boolean => path.at(-1) === 'secretName'

/** Fields and parameters in which less text can mean that more callers get in, or with less protection. */
const accessFields = new Set([
  ...['hosts', 'uri', 'azRules', 'authChain', 'authChainName', 'approvers', 'constraint', 'rules', 'administrators'],
  ...['operators', 'hd', 'cors-origins', 'uihelper.params', 'clientAzRules', 'subjectAzRules', 'inviterRule'],
  ...['allowedWorkflow', 'requireRequestorMatch', 'stepUpChain', 'issuer', 'audience', 'authorizedAudiences'],
  ...['requireInvitation', 'requireReCaptcha', 'humanCheck', 'captcha', 'verifyEmail', 'confirmByMail'],
  ...['readOnly', 'startTls', 'useSSL'],
])

/** A parameter may be written as a key, or as `name` beside `value`. */
function decidesAccess(path: Path, { yaml }: ConfigDocument): boolean {
  return path.some((step, i) => {
    const name = step === 'value' ? yaml.scalarText([...path.slice(0, i), 'name']) : step
    return typeof name === 'string' && accessFields.has(name)
  })
}

/** What can be read of a document with errors in its YAML, which are already reported. */
function readBroken({ yaml }: ConfigDocument, substitution: Substitution): unknown {
  const report = (): void => {}
  return yaml.toValue({ text: (value, path) => substitution.apply(value, path, report), report })
}

/** A required reference is a dependency, and of two objects with the same claim each depends on the other. */
function dependentsOf({ references, draft }: LoadState, providers: Providers): ReadonlyMap<Place, readonly Place[]> {
  const dependents = new Map<Place, Place[]>()
  const add = (needed: Place, by: Place): void => {
    if (needed === by) return
    const known = dependents.get(needed)
    if (known === undefined) dependents.set(needed, [by])
    else known.push(by)
  }
  const parts = draft.stsEndpoints.map(({ place }) => place)
  for (const { kind, name, document, path, absent } of references) {
    if (absent === 'warning' || kind === 'key') continue
    for (const needed of providers(kind).get(name) ?? []) add(needed, ownerOf(document, path, parts))
  }
  // With two blocks it is not clear which one is meant.
  for (const part of parts) for (const document of draft.stsDocuments) add(document, part)
  for (const { first, later } of draft.rivals) add(later, first)
  return dependents
}

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

function hashOf(
  sources: Sources,
  stored: readonly StoredObjects[],
  ...used: readonly ReadonlyMap<string, string>[]
): string {
  const sorted = (map: ReadonlyMap<string, string>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
  const ofDatabase = stored.flatMap((one) => one.files.map(({ file }) => file))
  const files = [...sources.files, ...(sources.reserved ?? []), ...ofDatabase].map(({ name, text }) => [name, text])
  const content = [files, sources.problems, ...[sources.keys, ...used].map(sorted)]
  return createHash('sha256').update(JSON.stringify(content)).digest('base64url')
}

export const secretsFolder = (options: Pick<LoadOptions, 'folder' | 'secretsFolder'>): string =>
  options.secretsFolder === undefined ? join(resolve(options.folder), 'secrets') : resolve(options.secretsFolder)

const within = (path: Path, outer: Path): boolean => outer.every((step, i) => path[i] === step)

interface GivenValues {
  readonly values: ReadonlyMap<string, string>
  /** By name of a value that a secret should have: why it has none. */
  readonly missingSecrets: ReadonlyMap<string, string>
  /** The values that secrets have, or should have. */
  readonly secretNames: ReadonlySet<string>
}

/** The scalars of all values documents, by name. Two documents may not define the same name. */
function collectValues(documents: readonly ConfigDocument[], secrets: SecretSource, issues: Issues): GivenValues {
  const values = new Map<string, string>()
  const places = new Map<string, string>()
  const ofOpenUnison: { document: ConfigDocument; read: OpenUnisonValues }[] = []
  for (const document of documents) {
    const filed = issues.for(document)
    const top = document.yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
    const read = isJsonObject(top) ? readOpenUnisonValues(document, top) : undefined
    if (read !== undefined) ofOpenUnison.push({ document, read })
    if (!isJsonObject(top) || top['kind'] === openUnisonKind) continue
    for (const [name, value] of Object.entries(top)) {
      if (name !== 'sts' && typeof value === 'object' && value !== null) {
        const hint = suggestion(name, ['sts'])
        if (read !== undefined && hint === '') continue
        filed.error([name], `expected a value for #[${name}], found a block; the only block is "sts"${hint}`)
        continue
      }
      const earlier = places.get(name)
      if (earlier !== undefined) filed.error([name], `"${name}" is given twice (first in ${earlier})`)
      places.set(name, earlier ?? document.at([name]))
      if (name !== 'sts') values.set(name, document.yaml.scalarText([name]) ?? '')
    }
  }
  const secretNames = new Set(ofOpenUnison.flatMap(({ read }) => read.secrets.names))
  return { values, missingSecrets: addOpenUnisonValues(ofOpenUnison, values, secrets, issues), secretNames }
}

/** Our own values documents win over those of OpenUnison, of which two may not contradict each other. */
function addOpenUnisonValues(
  given: readonly { readonly document: ConfigDocument; readonly read: OpenUnisonValues }[],
  values: Map<string, string>,
  secrets: SecretSource,
  issues: Issues,
): Map<string, string> {
  const missing = new Map<string, string>()
  const own = new Set(values.keys())
  const places = new Map<string, string>()
  for (const { document, read } of given) {
    const filed = issues.for(document)
    for (const [name, { text, path }] of read.values) {
      if (own.has(name) || text === values.get(name)) continue
      const earlier = places.get(name)
      if (earlier !== undefined) filed.error(path, `"${name}" has another value in ${earlier}`)
      places.set(name, earlier ?? document.at(path))
      if (earlier === undefined) values.set(name, text)
    }
    for (const name of read.secrets.names) {
      if (values.has(name)) continue
      const answer = secrets.read(read.secrets.secretName, name)
      if ('value' in answer) values.set(name, answer.value)
      else missing.set(name, answer.problem)
    }
    if (read.unused.length > 0) {
      filed.warning(
        [],
        `is read for its values of #[NAME]; these parts of OpenUnison are not used: ${read.unused.join(', ')}`,
      )
    }
  }
  return missing
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
  hidden: HiddenValues,
  issues: Issues,
): Dn {
  const set = environment[directoryRootValue]
  const given = set ?? values.get(directoryRootValue)
  if (given === undefined) return Dn.parse(defaultRoot)
  const report = (message: string): Dn => {
    const place =
      documents.find(({ yaml }) => yaml.scalarText([directoryRootValue]) !== undefined) ??
      new FixedPlace('.', undefined, undefined, 'everything')
    if (set !== undefined) hidden.at(place, [directoryRootValue], set, `#[${directoryRootValue}]`)
    issues.for(place).error([directoryRootValue], message)
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
