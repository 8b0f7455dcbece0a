import { searchedRoots } from '#config/build/directory-insert.ts'
import { withIssuer, withoutClients } from '#config/build/issuer.ts'
import { unnamed } from '#config/build/kinds.ts'
import { buildWorkflow } from '#config/build/provisioning.ts'
import type {
  ApplicationConfig,
  Configuration,
  RestoredWorkflow,
  SetAsideObject,
  StoredWorkflow,
} from '#config/configuration/configuration.ts'
import type { IssuerConfig } from '#config/configuration/issuer.ts'
import { BuildContext, type LoadState } from '#config/context/build-context.ts'
import { ConfigDocument, type Place } from '#config/context/config-document.ts'
import { checkReferences, Draft, type Reference } from '#config/context/draft.ts'
import { readYaml } from '#config/context/locate.ts'
import { readSchema } from '#config/context/schema-issues.ts'
import type { Environment } from '#config/context/substitute.ts'
import { workflowSchema } from '#config/kinds/provisioning.ts'
import type { ParsedFiles, ParsedObject } from '#config/sources/parse.ts'
import type { Dn } from '#identity/dn.ts'
import { Issues } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import { withBuiltInTargets } from './built-in-targets.ts'
import { closedApplication, closedInsert, closedUrl } from './closed-parts.ts'
import { namesOf, type Providers } from './providers.ts'
import { type Cause, causeText, endpointKind } from './set-aside.ts'

interface ServedParts {
  readonly state: LoadState
  readonly files: ParsedFiles
  /** The content of every object, even of one with invalid YAML. */
  readonly raw: ReadonlyMap<ConfigDocument, unknown>
  readonly root: Dn
  readonly hash: string
  readonly aside: ReadonlyMap<Place, Cause>
  readonly providers: Providers
  readonly environment: Environment
}

/** The configuration without the objects that are set aside. */
export function servedConfiguration(parts: ServedParts): Configuration {
  const { state, files, root, hash, aside, providers, environment } = parts
  const { draft, folder } = state
  const gone = files.objects.filter(({ document }) => aside.has(document))
  const isGone = (kind: string, name: string): boolean =>
    gone.some((object) => object.kind.kind === kind && (object.name ?? unnamed) === name)
  const served = <T>(kind: string, built: ReadonlyMap<string, T>): Map<string, T> =>
    new Map([...built].filter(([name]) => !isGone(kind, name)))
  const configs = <T>(kind: string, built: ReadonlyMap<string, { readonly config: T }>): Map<string, T> =>
    new Map(Array.from(served(kind, built), ([name, { config }]) => [name, config]))
  const here = <T extends { readonly document: ConfigDocument }>(built: readonly T[]): T[] =>
    built.filter(({ document }) => !aside.has(document))
  const hasSts = !draft.stsDocuments.some((document) => aside.has(document))
  const issuers = servedIssuers(here(draft.issuers), draft, aside)
  return {
    hash,
    folder,
    applications: servedApplications(parts, issuers),
    chains: configs('AuthenticationChain', draft.chains),
    targets: withBuiltInTargets(configs('Target', draft.targets), namesOf(files, 'target'), state, environment),
    outsideDirectory: new Set([...draft.resourceTargets.keys(), ...draft.outsideDirectory]),
    directoryRoot: root,
    inserts: [...here(draft.inserts).map(({ config }) => config), ...closedInserts(parts, gone)].sort(
      (a, b) => a.order - b.order || (a.name < b.name ? -1 : 1),
    ),
    workflows: configs('Workflow', draft.workflows),
    resultGroups: served('ResultGroup', draft.resultGroups),
    authorizations: served('CustomAuthorization', draft.authorizations),
    javaScripts: scriptTexts(new Map([...draft.javaScripts].filter(([name, { kind }]) => !isGone(kind, name)))),
    groupMappings: {
      mappings: here(draft.groupMappings).flatMap(({ config }) => config),
      sources: here(draft.groupSources).map(({ config }) => config),
    },
    trusts: served('Trust', draft.trusts),
    orgs: configs('Org', draft.orgs),
    portalUrls: served('PortalUrl', draft.portalUrls),
    reports: configs('Report', draft.reports),
    jobs: served('OUJob', draft.jobs),
    notifiers: served('Notifier', draft.notifiers),
    auditSinks: served('AuditSink', draft.auditSinks),
    auditAnchors: served('AuditAnchor', draft.auditAnchors),
    reconciliations: served('Reconciliation', draft.reconciliations),
    stsEndpoints: draft.stsEndpoints.flatMap(({ config, place }) =>
      config === undefined || aside.has(place) ? [] : [config],
    ),
    stsWebhook: hasSts ? draft.stsWebhook : undefined,
    issuers,
    setAside: setAsideOf(gone, draft, aside),
    restoreWorkflow: workflowRestorer(state, servedNames(providers, aside)),
  }
}

/** Without the applications whose Trust is set aside. */
function servedIssuers(issuers: Draft['issuers'], draft: Draft, aside: ReadonlyMap<Place, Cause>): IssuerConfig[] {
  const lost = Array.from(draft.trusts, ([, { trust, document }]) => (aside.has(document) ? [trust.clientId] : []))
  const lostClients = new Set(lost.flat())
  return issuers.map((issuer) => withoutClients(issuer, lostClients, draft))
}

/** In their order, those that are set aside with their addresses only. */
function servedApplications(parts: ServedParts, issuers: readonly IssuerConfig[]): ApplicationConfig[] {
  const { state, files, aside } = parts
  const { draft } = state
  return [
    ...files.objects.flatMap((object): ApplicationConfig[] => {
      if (object.kind.kind !== 'Application') return []
      if (aside.has(object.document)) return [closedApplication(closedPart(object, parts))]
      return draft.applications.flatMap(({ config, document }) => {
        if (document !== object.document) return []
        return [{ ...config, urls: config.urls.map((url) => withIssuer(url, issuers)) }]
      })
    }),
    ...draft.applications.flatMap(({ config, document }): ApplicationConfig[] =>
      draft.stsDocuments.includes(document) ? tokenApplications(config, document, draft, aside) : [],
    ),
  ]
}

function closedInserts(parts: ServedParts, gone: readonly ParsedObject[]): Configuration['inserts'] {
  const { state, root } = parts
  return gone
    .filter(({ kind }) => kind.kind === 'DirectoryInsert')
    .map((object) => closedInsert(closedPart(object, parts), root, searchedRoots(state.draft, root)))
}

const closedPart = (object: ParsedObject, { raw, aside, state }: ServedParts) => ({
  object,
  filters: state.catalog.filters,
  mayPass: aside.get(object.document)?.mayPass ?? false,
  value: raw.get(object.document),
  reason: causeText(aside.get(object.document)),
})

function setAsideOf(
  gone: readonly ParsedObject[],
  { targets, stsEndpoints }: Draft,
  aside: ReadonlyMap<Place, Cause>,
): SetAsideObject[] {
  return [
    ...gone.map(({ kind, name, document }) => ({
      kind: kind.kind,
      name: name ?? unnamed,
      reason: causeText(aside.get(document)),
      ...(kind.kind === 'Target' && name !== undefined ? { lookups: targets.get(name)?.config.target.lookups } : {}),
    })),
    ...stsEndpoints.flatMap(({ name = unnamed, place }) =>
      aside.has(place) ? [{ kind: endpointKind, name, reason: causeText(aside.get(place)) }] : [],
    ),
  ]
}

/** The application of the token service, and one for each endpoint that is set aside, with its addresses only. */
function tokenApplications(
  config: ApplicationConfig,
  document: ConfigDocument,
  { stsEndpoints }: Draft,
  aside: ReadonlyMap<Place, Cause>,
): ApplicationConfig[] {
  const cause = aside.get(document)
  const lost = stsEndpoints.filter(({ place }) => place.document === document && aside.has(place))
  const own = config.urls.filter((url) => !lost.some(({ urls }) => urls.includes(url)))
  const shared =
    cause === undefined
      ? { ...config, urls: own }
      : { ...config, setAside: setAsideBy(cause), urls: own.map(closedUrl) }
  const closed = lost.map(({ name = unnamed, place, urls }) => ({
    ...config,
    name: `${config.name} ${name}`,
    at: place.at([]),
    setAside: setAsideBy(aside.get(place)),
    urls: urls.map(closedUrl),
  }))
  return [shared, ...closed].filter(({ urls }) => urls.length > 0)
}

const setAsideBy = (cause: Cause | undefined): NonNullable<ApplicationConfig['setAside']> => ({
  reason: causeText(cause),
  mayPass: cause?.mayPass ?? false,
})

/** Each with the texts that it includes before it. */
function scriptTexts(scripts: Draft['javaScripts']): Map<string, string> {
  return new Map(
    Array.from(scripts, ([name, { text, includes }]) => {
      const before = includes.flatMap((included) => scripts.get(included)?.text ?? [])
      return [name, [...before, text].join('\n;\n')]
    }),
  )
}

/** The names of this kind that are served; the references are those of the stored workflow. */
type ServedNames = (kind: ReferenceKind, references: readonly Reference[]) => ReadonlySet<string>

const servedNames =
  (providers: Providers, aside: ReadonlyMap<Place, Cause>): ServedNames =>
  (kind, references) =>
    new Set(
      Array.from(providers(kind, references)).flatMap(([name, documents]) =>
        documents.some((document) => aside.has(document)) ? [] : [name],
      ),
    )

/** A function of its own, so that a configuration keeps nothing else of its load in memory. */
const workflowRestorer =
  (state: LoadState, served: ServedNames): Configuration['restoreWorkflow'] =>
  (stored) =>
    restoreWorkflow(stored, state, served)

/**
 * Reads the definition of a stored run with the modules and objects of the current configuration. Reads only files
 * that tasks name, and reports every problem instead of throwing.
 */
function restoreWorkflow(stored: StoredWorkflow, state: LoadState, served: ServedNames): RestoredWorkflow {
  const { name, hash, source } = stored
  const issues = new Issues()
  const { documents, problems } = readYaml(source)
  const [yaml] = documents
  if (yaml === undefined || documents.length > 1 || problems.length + yaml.problems.length > 0) {
    return { problems: ['its stored text is damaged'] }
  }
  const document = new ConfigDocument(`stored workflow ${name}`, yaml)
  const own: LoadState = { ...state, issues, references: [], scripts: [], draft: new Draft(), ignoreLater: () => {} }
  const filed = issues.for(document)
  const value = yaml.toValue({ text: (text) => text, report: (path, message) => filed.error(path, message) })
  const spec = readSchema(workflowSchema, isJsonObject(value) ? value['spec'] : undefined, ['spec'], filed)
  if (spec !== undefined) {
    buildWorkflow(spec, new BuildContext(own, document, name, undefined))
    checkReferences(own.references, (kind) => served(kind, own.references), issues)
  }
  const config = own.draft.workflows.get(name)?.config
  const errors = issues.list.filter(({ level }) => level === 'error')
  if (config === undefined || errors.length > 0) {
    return { problems: errors.map(({ path, message }) => `${path.join('.')}: ${message}`) }
  }
  return { config: { ...config, hash, source } }
}
