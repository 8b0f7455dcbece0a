import type { KeyObject } from 'node:crypto'
import type { AuditReader } from '#audit/audit-reader.ts'
import type { SecondFactors } from '#features/account/second-factors/second-factors.ts'
import { PasswordChanges } from '#features/passwords/service/password-changes.ts'
import type { ConfigurationAccess } from '#features/portal/access/configuration-access.ts'
import type { Portal } from '#features/portal/access/portal.ts'
import type { ServedProfile } from '#features/portal/access/profile-form.ts'
import type { SystemFacts } from '#features/portal/access/system-facts.ts'
import type { ReadStatistics } from '#features/portal/statistics/statistics-query.ts'
import type { RegistrationForm } from '#features/registration/service/offered-form.ts'
import type { Registrations } from '#features/registration/service/registrations.ts'
import type { Reports } from '#features/reports/report-endpoint.ts'
import type { EventStreamOptions, SecurityEvent } from '#features/scim/events/event-stream.ts'
import type { EventStreams } from '#features/scim/events/event-streams.ts'
import type { Journals } from '#features/scim/journal/journals.ts'
import type { TokenReport } from '#features/sts/service/token-report.ts'
import type { DirectorySearch, InsertEntry, MemberDirectory } from '#identity/directory.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Subject } from '#identity/subject.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import type { PodEndpoint } from '#protocols/admission/pod-endpoint.ts'
import type { ListenToSessions } from '#requests/sessions/session-listener.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { ServedApi } from '#sdk/filter/filter-api.ts'
import type { MetricsAccess } from '#sdk/filter/metrics-access.ts'
import type { ConfiguredTexts } from '#sdk/page/configured-texts.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import type { GroupMapping } from '#sdk/target/group-mappings.ts'
import type { Target } from '#sdk/target/target.ts'
import type { ScriptSecrets } from '#sdk/workflow/script-secrets.ts'
import { unknownWrites } from '#sdk/workflow/workflow-writes.ts'
import type { GatewayHost } from '#server/composition/hosts.ts'
import { memoryUserDirectory } from '#testing/databases/memory-database.ts'
import { fakeDirectory } from '#testing/login/fake-directory.ts'
import { noSessions } from '#testing/login/no-sessions.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakePortal } from '#testing/modules/fake-portal.ts'
import { absentStore, fakeService, type Public } from '#testing/workflows/call-store.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { WorkflowCatalog } from '#workflows/definitions/workflow-catalog.ts'
import type { OwnGrants } from '#workflows/grants/own-grants.ts'
import type { ListenToRuns } from '#workflows/runs/run-listener.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { ReadTargets } from '#workflows/targets/target-status.ts'

export interface FakeHostOptions {
  /** The time in milliseconds; the test sets it. */
  readonly now?: () => number
  readonly entries?: readonly InsertEntry[]
  /** Instead of one with the entries. */
  readonly directory?: MemberDirectory
  readonly targets?: Readonly<Record<string, Target>>
  readonly publicKeys?: Readonly<Record<string, KeyObject>>
  readonly signingKey?: { readonly privateKey: KeyObject; readonly publicKey: KeyObject }
  readonly secretKeys?: readonly KeyObject[]
  readonly authorize?: (subject: Subject, rules: readonly Rule[]) => RuleDecision
  readonly readJournal?: Journals['list']
  readonly clientTokens?: GatewayHost['clientTokens']
  readonly scimClients?: GatewayHost['scimClients']
  readonly openUserDirectory?: GatewayHost['openUserDirectory']
  readonly readStatistics?: ReadStatistics
  readonly runChanges?: ListenToRuns
  readonly sessionChanges?: ListenToSessions
  readonly audit?: AuditReader
  readonly reconciliations?: GatewayHost['reconciliations']
  readonly readSystem?: () => Promise<SystemFacts>
  readonly loaded?: ConfigurationAccess
  readonly tokenReport?: TokenReport
  readonly metrics?: MetricsAccess
  readonly runs?: Partial<Public<RunService>>
  readonly sessions?: SessionAccess
  readonly secondFactors?: SecondFactors
  readonly registrations?: Registrations
  readonly grants?: Partial<Public<OwnGrants>>
  readonly readTargets?: ReadTargets
  readonly groupMappings?: readonly GroupMapping[]
  readonly scriptSecrets?: ScriptSecrets
  readonly approvals?: Partial<Public<ApprovalDesk>>
  readonly workflowCatalog?: Public<WorkflowCatalog>
  /** Request parameters by workflow. */
  readonly loginAttributes?: ReadonlySet<string> | 'any'
  readonly workflowParameters?: Readonly<Record<string, readonly string[]>>
  readonly pollEvents?: EventStreams['poll']
  readonly portal?: Portal
  readonly portalUrl?: string
  readonly texts?: ConfiguredTexts
  readonly forms?: readonly RegistrationForm[]
  readonly apis?: readonly ServedApi[]
  readonly profiles?: readonly ServedProfile[]
  readonly reports?: Reports
  readonly stsPodEndpoints?: readonly PodEndpoint[]
}

export interface FakeModuleHost extends GatewayHost {
  readonly searches: DirectorySearch[]
  /** The events of streams, in order. */
  readonly events: (SecurityEvent & { readonly stream: EventStreamOptions })[]
  /** If given, appending an event fails with it. */
  eventFailure?: Error
}

const missing = (what: string): never => {
  throw new Error(`the fake host has no ${what}`)
}

const nothing = { services: {}, configuration: {}, directory: {}, targets: {} }
/** Of users without a link to the directory, whom they refuse. */
const noPasswords = new PasswordChanges(nothing as ConstructorParameters<typeof PasswordChanges>[0])

/** A host with the test's parts, which records the directory searches. */
export function fakeModuleHost(options: FakeHostOptions = {}): FakeModuleHost {
  const searches: DirectorySearch[] = []
  const directories = new Map<string, UserDirectory>()
  const events: (SecurityEvent & { readonly stream: EventStreamOptions })[] = []
  const clock = () => new Date(options.now?.() ?? Date.now())
  const host: FakeModuleHost = {
    searches,
    events,
    name: 'test',
    javaScript: () => undefined,
    ...(options.texts === undefined ? {} : { texts: options.texts }),
    ...(options.portalUrl === undefined ? {} : { portalUrl: options.portalUrl }),
    ...(options.forms === undefined ? {} : { forms: options.forms }),
    ...(options.profiles === undefined ? {} : { profiles: options.profiles }),
    ...(options.apis === undefined ? {} : { apis: options.apis }),
    log: silentLogger,
    clock,
    rateLimits: new MemoryRateLimits(clock),
    targets: {
      get: (name) => options.targets?.[name] ?? missing(`target ${name}`),
      names: () => Object.keys(options.targets ?? {}),
    },
    readTargets: options.readTargets ?? (async () => []),
    groupMappings: { list: async () => options.groupMappings ?? [] },
    scriptSecrets: options.scriptSecrets ?? absentStore('script secrets'),
    workflows: { run: async () => missing('workflows') },
    runs: fakeService<RunService>('runs', options.runs ?? { hasUnfinished: async () => false }),
    sessions: options.sessions ?? noSessions,
    secondFactors: options.secondFactors ?? absentStore('second factors'),
    registrations: options.registrations ?? absentStore('registrations'),
    clientTokens: options.clientTokens ?? absentStore('tokens of SCIM clients'),
    scimClients: options.scimClients ?? {
      tokens: absentStore('tokens of SCIM clients'),
      tenants: absentStore('tenants'),
      urls: [],
      named: new Set(),
    },
    passwords: noPasswords,
    approvals: fakeService<ApprovalDesk>('approvals', options.approvals ?? {}),
    grants: fakeService<OwnGrants>('grants', {
      ofRuns: async () => new Map(),
      through: async () => [],
      ...options.grants,
    }),
    workflowCatalog: fakeService<WorkflowCatalog>('workflows', options.workflowCatalog ?? { list: async () => [] }),
    loginAttributes: () => options.loginAttributes ?? new Set(),
    workflowWrites: () => unknownWrites,
    workflowParameters: (name) => {
      const names = new Map(Object.entries(options.workflowParameters ?? {})).get(name)
      return names === undefined ? undefined : new Set(names)
    },
    directory:
      options.directory ??
      fakeDirectory({
        async search(search) {
          searches.push(search)
          const found = (options.entries ?? [])
            .map(directoryEntry)
            .filter(({ dn, attributes }) => dn.isWithin(search.base) && matches(search.filter, attributes))
          return found.slice(0, search.limit)
        },
        isMember: async () => false,
      }),
    keys: {
      publicKey: async (name) => options.publicKeys?.[name],
      signingKey: async () => options.signingKey ?? missing('signing key'),
      secretKeys: async () => options.secretKeys ?? missing('secret keys'),
    },
    authorize: async (subject, rules) => options.authorize?.(subject, rules) ?? { allowed: false, verdicts: [] },
    openUserDirectory:
      options.openUserDirectory ??
      (async ({ name }) => {
        const directory = directories.get(name) ?? memoryUserDirectory(name)
        directories.set(name, directory)
        return directory
      }),
    journals: {
      open: () => ({ add: () => {}, close: async () => {} }),
      list: options.readJournal ?? (async () => missing('journal to read')),
    },
    runChanges: options.runChanges ?? (() => () => {}),
    sessionChanges: options.sessionChanges ?? (() => () => {}),
    audit: options.audit ?? absentStore('audit'),
    reconciliations: options.reconciliations ?? {
      plans: absentStore('plans'),
      configured: new Map(),
      systems: () => undefined,
    },
    readStatistics: options.readStatistics ?? (async () => missing('statistics')),
    eventStreams: {
      open: (stream) => ({
        append: async (appended) => {
          if (host.eventFailure !== undefined) throw host.eventFailure
          events.push(...appended.map((event) => ({ ...event, stream })))
        },
        close: async () => {},
      }),
      poll: options.pollEvents ?? (async () => missing('events to poll')),
    },
    stsPodEndpoints: options.stsPodEndpoints ?? [],
    portal: options.portal ?? fakePortal(),
    ...(options.tokenReport === undefined ? {} : { tokenReport: options.tokenReport }),
    ...(options.metrics === undefined ? {} : { metrics: options.metrics }),
    ...(options.loaded === undefined ? {} : { loaded: options.loaded }),
    ...(options.readSystem === undefined ? {} : { readSystem: options.readSystem }),
    ...(options.reports === undefined ? {} : { reports: options.reports }),
  }
  return host
}
