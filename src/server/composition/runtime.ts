import type { Configuration } from '#config/configuration/configuration.ts'
import { createAt } from '#config/configuration/create-at.ts'
import { createMounts } from '#directory/create-directory.ts'
import { VirtualDirectory } from '#directory/virtual-directory.ts'
import { type IssuerServices, Issuers } from '#features/issuer/service/issuers.ts'
import { createReports, type ReportParts } from '#features/reports/report-endpoint.ts'
import { createTokenService, type TokenIssuing, type TokenServices } from '#features/sts/service/token-issuing.ts'
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
    Pick<TokenServices, 'tokenKeys' | 'issuing' | 'countExchange'> {
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
  /** Undefined if no token endpoint is configured. */
  readonly tokens?: TokenIssuing | undefined
  close(): Promise<void>
}

/** Creates every module of a configuration. If one fails, closes those before it and throws. */
export async function createRuntime(configuration: Configuration, services: RuntimeServices): Promise<Runtime> {
  const { value, scope } = await buildScoped((scope) => build(configuration, services, scope))
  return { ...value, configuration, close: () => scope.close() }
}

async function build(configuration: Configuration, services: RuntimeServices, scope: Scope) {
  const { clock, log } = services
  // These refer to each other, so they exist before the modules that fill them.
  const targets = new Map<string, Target>()
  const health = new TargetHealth(clock, services.runs, services.targetMeter)
  const issuerHealth = new IssuerHealth(clock)
  const watchIssuer = issuerHealth.watch.bind(issuerHealth)
  const authorizations = new Map<string, Authorization>()
  const dynamicWorkflows = new Map<string, DynamicWorkflowSource>()
  const chains = new Map<string, Chain>()
  const directory = new VirtualDirectory()
  let tokens: TokenIssuing | undefined

  const target = (name: string): Target => {
    const found = targets.get(name)
    if (found === undefined) throw new GatewayError('INTERNAL', `there is no target "${name}"`)
    return found
  }
  const ownersOf = async (name: string, userID: string): Promise<readonly Identity[]> =>
    directory.ownersOf({ target: name, userID, stored: await target(name).storedAt?.(userID) })
  const rules = new RuleEvaluator(directory, authorizations, log)
  const decide = rules.decide.bind(rules)
  const root = configuration.directoryRoot
  const workflows = new WorkflowRuntime({ configuration, services, directory, root, rules, authorizations })
  const runner = new ChainRunner(chains)
  const times = services.renewalTimes === undefined ? {} : { times: services.renewalTimes }
  const renewal = new SessionRenewal({ ...services, ...times, directory, chains: runner })
  const issuers = new Issuers({
    configuration,
    services,
    decide,
    present: async (sessionId, asker) => {
      const session = await services.sessions.findPublic(sessionId)
      return session && (await renewal.current(session, asker))?.subject
    },
  })
  const reports = services.reports && (await createReports(configuration.reports, { ...services.reports, clock, log }))
  const { runs, approvals } = workflows
  const host = createHostFor({
    configuration,
    services,
    directory,
    targets: { get: target, names: () => [...targets.keys()].sort(), ownersOf },
    readTargets: () => health.list(),
    rules,
    runs,
    approvals,
    dynamicWorkflows,
    issuers,
    watchIssuer,
    reports,
    tokens: () => tokens,
  })

  await createTargets(configuration, host, scope, (name, className, created) =>
    targets.set(name, health.watch(name, className, created)),
  )
  const { loopbackOnly } = services
  directory.mount(
    await createMounts(configuration, targets, scope, ({ name, insert, suffix, at }) =>
      createAt(at, () => insert.create({ ...host(name, insert.className, at), suffix, loopbackOnly })),
    ),
  )
  for (const [name, { authorization, at }] of configuration.authorizations) {
    const create = () => authorization.create(host(name, authorization.className, at))
    authorizations.set(name, scope.own(await createAt(at, create)))
  }
  for (const [name, { dynamic, at }] of configuration.workflows) {
    if (dynamic === undefined) continue
    const create = () => dynamic.source.create(host(name, dynamic.source.className, at))
    dynamicWorkflows.set(name, scope.own(await createAt(at, create)))
  }
  await workflows.start(host, scope)
  await issuers.start(host, scope)
  await createChains({ configuration, host, scope }, chains)
  const { stsEndpoints: endpoints } = configuration
  tokens = await createTokenService({ services, endpoints, host, scope, target, decide, watchIssuer })
  const applications = await createApplications({ configuration, host, scope, chains })
  const notifiers = await createNotifiers(configuration, host, scope)
  const routes = new Routes(applications)
  const loginRoutes = new LoginRoutes(applications, runner)
  const handle = createPipeline({ ...services, routes, loginRoutes, rules, chains: runner, renewal })
  await workflows.startJobs(host, scope)
  const checkOutside = async () => ({ targets: await health.check(), issuers: issuerHealth.list() })
  return { handle, checkOutside, routes, loginRoutes, rules, notifiers, target, workflows, tokens }
}

/** In parallel, since a plug-in takes time to start. Waits for all of them before it throws the first failure. */
async function createTargets(
  { targets: configs }: Configuration,
  host: HostFor<GatewayHost>,
  scope: Scope,
  add: (name: string, className: string, target: Target) => void,
): Promise<void> {
  const created = await Promise.allSettled(
    Array.from(configs, async ([name, { target, at }]) => {
      const made = await createAt(at, () => target.create(host(name, target.className, at)))
      return [name, target.className, scope.own(made)] as const
    }),
  )
  for (const one of created) {
    if (one.status === 'rejected') throw one.reason
    add(...one.value)
  }
}
