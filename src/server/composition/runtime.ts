import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt, createEach, throwFailures } from '#config/configuration/create-at.ts'
import { createMounts } from '#directory/create-directory.ts'
import { VirtualDirectory } from '#directory/virtual-directory.ts'
import { type IssuerServices, Issuers } from '#features/issuer/service/issuers.ts'
import { type ReconciliationServices, Reconciliations } from '#features/reconciliation/service/reconciliations.ts'
import { createReports, type ReportParts } from '#features/reports/report-endpoint.ts'
import type { TokenGrants } from '#features/sts/grants/token-grants.ts'
import {
  createTokenService,
  type TokenIssuing,
  type TokenService,
  type TokenServices,
} from '#features/sts/service/token-issuing.ts'
import type { Identity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { createNotifiers, type Notifiers } from '#mail/notifiers.ts'
import { type IssuerCheck, IssuerHealth } from '#protocols/jwt/issuer-health.ts'
import type { LoginServices } from '#requests/login/login-desk.ts'
import { LoginRoutes } from '#requests/login/login-routes.ts'
import { createApplications, createChains } from '#requests/pipeline/create-applications.ts'
import { createPipeline, type Pipeline } from '#requests/pipeline/pipeline.ts'
import { type RenewalTimes, SessionRenewal } from '#requests/pipeline/session-renewal.ts'
import { type Chain, ChainRunner } from '#requests/routing/chain.ts'
import { Routes } from '#requests/routing/routes.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { HostFor } from '#sdk/host/host.ts'
import type { Target } from '#sdk/target/target.ts'
import type { DynamicWorkflowSource } from '#sdk/workflow/dynamic-workflow.ts'
import { TargetHealth, type TargetHealthCheck, type TargetMeter } from '#workflows/targets/target-health.ts'
import { WorkflowRuntime, type WorkflowRuntimeServices } from '#workflows/workflow-runtime.ts'
import { createHostFor, type GatewayHost, type HostServices } from './hosts.ts'

/**
 * What starts and stops with the process, and so outlives a configuration: the stores, the clock, the log, the
 * keys.
 */
export interface RuntimeServices
  extends WorkflowRuntimeServices,
    LoginServices,
    Omit<HostServices, 'audit' | 'grants'>,
    Pick<IssuerServices, 'issuer'>,
    Pick<ReconciliationServices, 'reconciliations'>,
    Pick<TokenServices, 'tokenKeys' | 'issuing' | 'countExchange' | 'keepsGrants'> {
  /** How often sessions are checked against the directory; the default if absent. */
  readonly renewalTimes?: RenewalTimes | undefined
  /** Whether the public listener is a loopback address. */
  readonly loopbackOnly?: boolean | undefined
  readonly targetMeter?: TargetMeter | undefined
  /** See the pipeline. */
  readonly secondsToRetry?: (() => number | undefined) | undefined
  /** Absent if no reports are served. */
  readonly reports?: Pick<ReportParts, 'store' | 'secrets' | 'meter'>
}

/** Systems that the gateway depends on, by what this process knows of them. */
export interface OutsideHealth {
  readonly targets: readonly TargetHealthCheck[]
  readonly issuers: readonly IssuerCheck[]
}

/** What starts and stops with a configuration. */
export interface Runtime {
  readonly configuration: Configuration
  readonly handle: Pipeline
  readonly routes: Routes
  readonly loginRoutes: LoginRoutes
  readonly rules: RuleEvaluator
  readonly notifiers: Notifiers
  /** Throws INTERNAL for an unknown name. */
  target(name: string): Target
  /** Which systems outside of the gateway answer. Takes a few seconds if a target doesn't. */
  checkOutside(): Promise<OutsideHealth>
  readonly workflows: WorkflowRuntime
  readonly reconciliations: Reconciliations
  /** Undefined if no token endpoint is configured. */
  readonly tokens?: TokenIssuing | undefined
  /** Undefined if no token endpoint honors grants. */
  readonly grants?: TokenGrants | undefined
  close(): Promise<void>
}

/** Creates every module of a configuration. If one fails, closes those before it and throws. */
export async function createRuntime(configuration: Configuration, services: RuntimeServices): Promise<Runtime> {
  const { value, scope } = await buildScoped((scope) => build(configuration, services, scope))
  return { ...value, configuration, close: () => scope.close() }
}

/** What refers to each other, so it exists before the modules that fill it. */
function emptyParts({ clock, runs, targetMeter }: RuntimeServices) {
  const issuerHealth = new IssuerHealth(clock)
  return {
    targets: new Map<string, Target>(),
    health: new TargetHealth(clock, runs, targetMeter),
    issuerHealth,
    watchIssuer: issuerHealth.watch.bind(issuerHealth),
    authorizations: new Map<string, Authorization>(),
    dynamicWorkflows: new Map<string, DynamicWorkflowSource>(),
    chains: new Map<string, Chain>(),
    directory: new VirtualDirectory(),
  }
}

async function build(configuration: Configuration, services: RuntimeServices, scope: Scope) {
  const { clock, log } = services
  const parts = emptyParts(services)
  const { targets, health, issuerHealth, watchIssuer, authorizations, dynamicWorkflows, chains, directory } = parts
  const target = (name: string): Target => {
    const found = targets.get(name)
    if (found === undefined) throw new GatewayError('INTERNAL', `there is no target "${name}"`)
    return found
  }
  const rules = new RuleEvaluator(directory, authorizations, log)
  const decide = rules.decide.bind(rules)
  const root = configuration.directoryRoot
  const workflows = new WorkflowRuntime({ configuration, services, directory, root, rules, authorizations })
  const runner = new ChainRunner(chains)
  const renewal = new SessionRenewal({ ...services, times: services.renewalTimes, directory, chains: runner })
  const issuers = createIssuers(configuration, services, decide, renewal)
  const reports = services.reports && (await createReports(configuration.reports, { ...services.reports, clock, log }))
  let service: TokenService | undefined
  let reconciliations: Reconciliations | undefined
  const host = createHostFor({
    configuration,
    services,
    directory,
    targets: { get: target, names: () => [...targets.keys()].sort(), ownersOf: ownersIn(directory, target) },
    readTargets: () => health.list(),
    rules,
    runs: workflows.runs,
    approvals: workflows.approvals,
    dynamicWorkflows,
    issuers,
    watchIssuer,
    reports,
    tokens: () => service?.issuing,
    reconciliations: () => reconciliations,
  })
  const modules: ModuleParts = { configuration, host, scope }
  await createTargets(modules, (name, className, created) => targets.set(name, health.watch(name, className, created)))
  await mountDirectory(modules, directory, targets, services.loopbackOnly)
  await createAuthorizations(modules, authorizations)
  await createDynamicWorkflows(modules, dynamicWorkflows)
  await workflows.start(host, scope)
  await issuers.start(host, scope)
  await createChains(modules, chains)
  const { stsEndpoints: endpoints } = configuration
  service = await createTokenService({ services, endpoints, host, scope, target, decide, watchIssuer })
  const applications = await createApplications({ ...modules, chains })
  const notifiers = await createNotifiers(configuration, host, scope)
  const routes = new Routes(applications)
  const loginRoutes = new LoginRoutes(applications, runner)
  const handle = createPipeline({ ...services, routes, loginRoutes, rules, chains: runner, renewal })
  const prepare = workflows.runs.prepare.bind(workflows.runs)
  reconciliations = await Reconciliations.create({ configuration, services, prepare }, host, scope)
  await workflows.startJobs(host, scope)
  reconciliations.startSchedules(scope)
  const checkOutside = async () => ({ targets: await health.check(), issuers: issuerHealth.list() })
  return {
    handle,
    checkOutside,
    routes,
    loginRoutes,
    rules,
    notifiers,
    target,
    workflows,
    reconciliations,
    tokens: service?.issuing,
    grants: service?.grants,
  }
}

/** Whom an account of a target belongs to. */
const ownersIn =
  (directory: VirtualDirectory, target: (name: string) => Target) =>
  async (name: string, userID: string): Promise<readonly Identity[]> =>
    directory.ownersOf({ target: name, userID, stored: await target(name).storedAt?.(userID) })

const createIssuers = (
  configuration: Configuration,
  services: RuntimeServices,
  decide: RuleEvaluator['decide'],
  renewal: SessionRenewal,
): Issuers =>
  new Issuers({
    configuration,
    services,
    decide,
    present: async (sessionId, asker) => {
      const session = await services.sessions.findPublic(sessionId)
      return session && (await renewal.current(session, asker))?.subject
    },
    use: (sessionId) => services.sessions.useCompanion(sessionId),
  })

/** What the modules of a configuration are created with. */
interface ModuleParts {
  readonly configuration: Configuration
  readonly host: HostFor<GatewayHost>
  readonly scope: Scope
}

async function mountDirectory(
  { configuration, host, scope }: ModuleParts,
  directory: VirtualDirectory,
  targets: ReadonlyMap<string, Target>,
  loopbackOnly: boolean | undefined,
): Promise<void> {
  const mounts = await createMounts(configuration, targets, scope, ({ name, insert, suffix, at }) =>
    createAt(at, () => insert.create({ ...host(name, insert.className, at), suffix, loopbackOnly })),
  )
  directory.mount(mounts)
}

async function createAuthorizations(
  { configuration, host, scope }: ModuleParts,
  authorizations: Map<string, Authorization>,
): Promise<void> {
  await createEach(configuration.authorizations, async ([name, { authorization, at }]) => {
    const create = () => authorization.create(host(name, authorization.className, at))
    authorizations.set(name, scope.own(await createAt(at, create)))
  })
}

async function createDynamicWorkflows(
  { configuration, host, scope }: ModuleParts,
  dynamicWorkflows: Map<string, DynamicWorkflowSource>,
): Promise<void> {
  await createEach(configuration.workflows, async ([name, { dynamic, at }]) => {
    if (dynamic === undefined) return
    const create = () => dynamic.source.create(host(name, dynamic.source.className, at))
    dynamicWorkflows.set(name, scope.own(await createAt(at, create)))
  })
}

/** In parallel, since a plug-in takes time to start. Waits for all of them before it throws what failed. */
async function createTargets(
  { configuration, host, scope }: ModuleParts,
  add: (name: string, className: string, target: Target) => void,
): Promise<void> {
  const created = await Promise.allSettled(
    Array.from(configuration.targets, async ([name, { target, at }]) => {
      const made = await createAt(at, () => target.create(host(name, target.className, at)))
      return [name, target.className, scope.own(made)] as const
    }),
  )
  throwFailures(created.flatMap((one) => (one.status === 'rejected' ? [one.reason] : [])))
  for (const one of created) if (one.status === 'fulfilled') add(...one.value)
}
