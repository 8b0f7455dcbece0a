import { createDirectory } from '#engine/directory/create-directory.ts'
import { VirtualDirectory } from '#engine/directory/virtual-directory.ts'
import type { HostFor } from '#engine/engine-host.ts'
import type { EventStreams } from '#engine/events/event-streams.ts'
import { type IssuerServices, Issuers } from '#engine/issuer/issuers.ts'
import type { Journals } from '#engine/journal/journals.ts'
import type { LoginServices } from '#engine/login/login-desk.ts'
import { LoginRoutes } from '#engine/login/login-routes.ts'
import { createNotifiers, type Notifiers } from '#engine/mail/notifiers.ts'
import { PasswordChanges, type PasswordServices } from '#engine/passwords/password-changes.ts'
import { type Chain, ChainRunner } from '#engine/pipeline/chain.ts'
import { createPipeline, type Pipeline } from '#engine/pipeline/pipeline.ts'
import { type Application, Routes, type Url } from '#engine/pipeline/routes.ts'
import { RuleEvaluator } from '#engine/pipeline/rule-evaluator.ts'
import { createPortal } from '#engine/portal/create-portal.ts'
import { createPortalMemory } from '#engine/portal/portal-memory.ts'
import { type RegistrationParts, Registrations } from '#engine/registrations/registrations.ts'
import { createReports } from '#engine/reports/create-reports.ts'
import type { ReportParts } from '#engine/reports/report-endpoint.ts'
import { type SecondFactorParts, SecondFactors } from '#engine/second-factors/second-factors.ts'
import { createSessionAccess } from '#engine/session/session-access.ts'
import { type RenewalTimes, SessionRenewal } from '#engine/session/session-renewal.ts'
import { createStatistics } from '#engine/statistics/create-statistics.ts'
import { AdmissionAudit } from '#engine/sts/admission-audit.ts'
import { createTokenService, type TokenServices } from '#engine/sts/create-token-service.ts'
import type { TokenIssuing } from '#engine/sts/token-issuing.ts'
import { loginAttributes, workflowParameters } from '#engine/workflow/workflow-parameters.ts'
import { WorkflowRuntime, type WorkflowRuntimeServices } from '#engine/workflow-runtime.ts'
import type { MemberDirectory } from '#identity/directory.ts'
import type { Identity } from '#identity/identity.ts'
import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import { isIssuedBy } from '#sdk/auth/issuer.ts'
import { jsonErrors } from '#sdk/filter/error-format.ts'
import type { ApplicationConfig, Configuration, UrlConfig } from '#sdk/module/configuration.ts'
import type { Target } from '#sdk/target/target.ts'
import type { DynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import { workflowWrites } from '#sdk/workflow/workflow-writes.ts'
import type { PortalStore } from '#storage/portal-store.ts'
import type { StatisticsStore } from '#storage/statistics-store.ts'

/** What outlives a configuration: the database, the clock, the log, the keys of the installation. */
export interface RuntimeServices
  extends WorkflowRuntimeServices,
    LoginServices,
    Pick<PasswordServices, 'passwordChanges'>,
    Pick<IssuerServices, 'issuer'>,
    Pick<TokenServices, 'tokenKeys' | 'issuing' | 'countExchange'> {
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
  /** How often the directory is asked about people who are logged in; as usual when absent. */
  readonly renewalTimes?: RenewalTimes
  /** Whether the public listener is a loopback address. */
  readonly loopbackOnly?: boolean | undefined
  readonly journals: Journals
  readonly events: EventStreams
  readonly registrations: Pick<RegistrationParts, 'store' | 'secrets' | 'meter'>
  readonly portal: PortalStore
  readonly statistics: StatisticsStore
  /** Absent where no reports are served. */
  readonly reports?: Pick<ReportParts, 'store' | 'secrets' | 'meter'>
  readonly secondFactors: Pick<SecondFactorParts, 'store' | 'secrets'>
}

/** One configuration, running. */
export interface Runtime {
  readonly configuration: Configuration
  readonly handle: Pipeline
  readonly routes: Routes
  readonly loginRoutes: LoginRoutes
  readonly rules: RuleEvaluator
  readonly notifiers: Notifiers
  /** Throws INTERNAL when there is none of that name. */
  target(name: string): Target
  readonly workflows: WorkflowRuntime
  /** Undefined where no token endpoint is configured. */
  readonly tokens?: TokenIssuing | undefined
  close(): Promise<void>
}

/** Creates every module of a configuration; when one cannot be created, those before it are closed and it throws. */
export async function createRuntime(configuration: Configuration, services: RuntimeServices): Promise<Runtime> {
  const { value, scope } = await buildScoped((scope) => build(configuration, services, scope))
  return { ...value, configuration, close: () => scope.close() }
}

async function build(configuration: Configuration, services: RuntimeServices, scope: Scope) {
  const targets = new Map<string, Target>()
  const authorizations = new Map<string, Authorization>()
  // Targets may hold on to the directory before they, and so its inserts, are there.
  let tree = new VirtualDirectory([])
  const directory: MemberDirectory = {
    search: (search) => tree.search(search),
    page: (search) => tree.page(search),
    bind: (dn, password, caller) => tree.bind(dn, password, caller),
    isMember: (group, member) => tree.isMember(group, member),
    members: (group, limit) => tree.members(group, limit),
    entry: (identity) => tree.entry(identity),
  }
  const rules = new RuleEvaluator(directory, authorizations, services.log)
  const parts = { configuration, services, directory, root: configuration.directoryRoot, rules, authorizations }
  const workflows = new WorkflowRuntime(parts)
  const sources = new Map<string, DynamicWorkflowSource>()
  const portal = createPortal(configuration, sources, createPortalMemory(services.portal))
  const registrations = new Registrations({ ...services.registrations, runs: workflows.runs, clock: services.clock })
  const secondFactors = new SecondFactors({ ...services.secondFactors, clock: services.clock })
  const target = (wanted: string): Target => {
    const found = targets.get(wanted)
    if (found === undefined) throw new GatewayError('INTERNAL', `there is no target "${wanted}"`)
    return found
  }
  const ownersOf = async (name: string, userID: string): Promise<readonly Identity[]> =>
    tree.ownersOf({ target: name, userID, stored: await target(name).storedAt?.(userID) })
  const source = { get: target, ownersOf }
  const passwords = new PasswordChanges({ services, configuration, directory: () => tree, targets: source })
  const { clock, log } = services
  const chains = new Map<string, Chain>()
  const runner = new ChainRunner(chains)
  const times = services.renewalTimes === undefined ? {} : { times: services.renewalTimes }
  const renewal = new SessionRenewal({ ...services, ...times, directory, chains: runner })
  const issuers = new Issuers({
    configuration,
    services,
    decide: (subject, wanted) => rules.decide(subject, wanted),
    present: async (sessionId, asker) => {
      const session = await services.sessions.findPublic(sessionId)
      return session && (await renewal.current(session, asker))?.subject
    },
  })
  const reports = services.reports && (await createReports(configuration.reports, { ...services.reports, clock, log }))
  let tokens: TokenIssuing | undefined
  const admissions = new AdmissionAudit(services)
  const host: HostFor = (name, className, at) => ({
    name,
    log: services.log.with({ module: className, at }),
    clock: services.clock,
    keys: services.keys,
    javaScript: (mapping) => configuration.javaScriptMappings.get(mapping),
    targets: source,
    workflows: { run: async (call, started) => await workflows.runs.run(call, started) },
    runs: workflows.runs,
    approvals: workflows.approvals,
    grants: services.grants,
    workflowParameters: (wanted) => workflowParameters(configuration, wanted),
    loginAttributes: (workflow) => loginAttributes(configuration, workflow),
    workflowWrites: (workflow) =>
      workflowWrites(
        {
          tasks: (wanted) => configuration.workflows.get(wanted)?.tasks,
          mapping: (wanted) => configuration.targets.get(wanted)?.mapping,
        },
        workflow,
      ),
    directory,
    authorize: (subject, wanted) => rules.decide(subject, wanted),
    openUserDirectory: services.openUserDirectory,
    openJournal: (options) => services.journals.open(options),
    readJournal: (query) => services.journals.list(query),
    readStatistics: createStatistics(services.statistics, services.journals),
    openEventStream: (options) => services.events.open(options),
    pollEvents: (stream, poll) => services.events.poll(stream, poll),
    portal,
    registrations,
    passwords,
    sessions: createSessionAccess(services.sessions, configuration),
    secondFactors,
    stsPodEndpoints: configuration.stsEndpoints.flatMap(({ pods }) => pods ?? []),
    recordAdmission: (admission) => admissions.record(admission),
    ...(reports === undefined ? {} : { reports }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(configuration.issuers.length === 0 ? {} : { issuers }),
    ownsIssuer: (issuer) =>
      configuration.issuers.some((own) => isIssuedBy(own, issuer)) ||
      configuration.stsEndpoints.some((own) => own.endpoint.issuer === issuer),
  })

  await createTargets(configuration, host, scope, targets)
  tree = await createDirectory(
    configuration,
    targets,
    ({ name, insert, suffix, at }) =>
      named(at, () =>
        insert.create({ ...host(name, insert.className, at), suffix, loopbackOnly: services.loopbackOnly }),
      ),
    scope,
  )
  for (const [name, { authorization, at }] of configuration.authorizations) {
    authorizations.set(
      name,
      scope.own(await named(at, () => authorization.create(host(name, authorization.className, at)))),
    )
  }
  for (const [name, { dynamic, at }] of configuration.workflows) {
    if (dynamic === undefined) continue
    const create = () => dynamic.source.create(host(name, dynamic.source.className, at))
    sources.set(name, scope.own(await named(at, create)))
  }
  await workflows.start(host, scope)
  await issuers.start(host, scope)
  await createChains(configuration, host, scope, chains)
  const decide = rules.decide.bind(rules)
  tokens = await createTokenService({ services, endpoints: configuration.stsEndpoints, host, scope, target, decide })
  const applications: Application[] = []
  for (const application of configuration.applications) {
    applications.push(await createApplication(application, configuration, chains, host, scope))
  }
  const notifiers = await createNotifiers(configuration, host, scope)
  const routes = new Routes(applications)
  const loginRoutes = new LoginRoutes(applications, runner)
  const handle = createPipeline({ ...services, routes, loginRoutes, rules, chains: runner, renewal })
  await workflows.startJobs(host, scope)
  return { handle, routes, loginRoutes, rules, notifiers, target, workflows, tokens }
}

/** Side by side, since a plug-in takes a moment to start. All have come to an end before the first failure is thrown. */
async function createTargets(
  { targets: configs }: Configuration,
  host: HostFor,
  scope: Scope,
  targets: Map<string, Target>,
): Promise<void> {
  const created = await Promise.allSettled(
    Array.from(configs, async ([name, { target, at }]) => {
      const made = await named(at, () => target.create(host(name, target.className, at)))
      return [name, scope.own(made)] as const
    }),
  )
  for (const one of created) {
    if (one.status === 'rejected') throw one.reason
    targets.set(...one.value)
  }
}

async function createChains(
  configuration: Configuration,
  host: HostFor,
  scope: Scope,
  chains: Map<string, Chain>,
): Promise<void> {
  for (const [name, config] of configuration.chains) {
    const links = []
    for (const { name: mechanismName, uri, required, at, mechanism } of config.mechanisms) {
      const created = await named(at, () => mechanism.create(host(mechanismName, mechanism.className, at)))
      const { interactive, includes } = mechanism
      links.push({ name: mechanismName, required, mechanism: scope.own(created), uri, interactive, includes })
    }
    const { level, finishOnRequiredSuccess, limits } = config
    chains.set(name, {
      name,
      level,
      limits,
      finishOnRequiredSuccess,
      links,
      root: config.root ?? configuration.directoryRoot.toString(),
    })
  }
}

async function createApplication(
  config: ApplicationConfig,
  configuration: Configuration,
  chains: ReadonlyMap<string, Chain>,
  host: HostFor,
  scope: Scope,
): Promise<Application> {
  const urls: Url[] = []
  for (const url of config.urls) urls.push(await createUrl(config.name, url, configuration, chains, host, scope))
  return { name: config.name, azTimeoutMillis: config.azTimeoutMillis, cookies: config.cookies, urls }
}

async function createUrl(
  application: string,
  config: UrlConfig,
  configuration: Configuration,
  chains: ReadonlyMap<string, Chain>,
  host: HostFor,
  scope: Scope,
): Promise<Url> {
  const filters = []
  for (const filter of config.filters) {
    const create = () => filter.create(host(application, filter.className, filter.at))
    filters.push(scope.own(await named(filter.at, create)))
  }
  const chain = config.chain === undefined ? undefined : chains.get(config.chain)
  if (config.chain !== undefined && chain === undefined) throw new Error(`${config.at}: no chain "${config.chain}"`)
  const answering = config.filters.find((filter) => filter.answers === true)
  const results = (name: string | undefined) =>
    name === undefined ? undefined : configuration.resultGroups.get(name)?.results
  return {
    at: config.at,
    hosts: config.hosts,
    uri: config.uri,
    pattern: config.pattern,
    chain,
    otherChains: config.filters.flatMap((filter) => filter.chains ?? []).flatMap((name) => chains.get(name) ?? []),
    rules: config.rules,
    filters,
    errors: answering?.errors ?? jsonErrors,
    takesForms: answering?.takesForms ?? false,
    openPaths: config.filters[0]?.openPaths,
    extendsSession: !config.filters.some((filter) => filter.leavesSession === true),
    results: {
      auSuccess: results(config.results.auSuccess),
      auFail: results(config.results.auFail),
      azSuccess: results(config.results.azSuccess),
      azFail: results(config.results.azFail),
    },
  }
}

/** Puts the place in the YAML in front of whatever goes wrong while something is created. */
async function named<T>(at: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create()
  } catch (cause) {
    throw new Error(`${at}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}
