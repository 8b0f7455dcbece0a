import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openRuntime } from '#cli/command-line/installation.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { SecretSource } from '#config/context/secrets.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Scope } from '#kernel/scope.ts'
import { type OutgoingProxy, usedProxies } from '#protocols/http/outgoing-proxy.ts'
import type { Target } from '#sdk/target/target.ts'
import type { PreparedTarget } from '#sdk/target-module/target-module.ts'
import type { Runtime } from '#server/composition/runtime.ts'
import { checkTarget } from '#workflows/targets/target-health.ts'
import { type Diagnosis, type Finding, ok, type Probe, problem, reasonOf, warning, within } from './diagnosis.ts'

interface TargetParts {
  readonly secrets: SecretSource
  /** The time limit of each probe. */
  readonly millis: number
  readonly scope: Scope
}

/** A look-up is a part of each change, and of each request of a SCIM client. */
const slowMillis = 1000
const advice = 'Check the address, the credentials and the certificate authority of the target.'

/** Targets work on an empty database of their own, so that nothing of the gateway is changed. */
export async function targetProbes(
  configuration: Configuration,
  { secrets, millis, scope }: TargetParts,
): Promise<{ probes: readonly Probe[]; diagnoses: readonly Diagnosis[] }> {
  const names = Array.from(configuration.targets, ([name, { target }]) => ({ name, className: target.className }))
  // Its users are in the database, which has a probe of its own.
  const outside = names.filter(({ className }) => className !== 'targets.Database')
  if (outside.length === 0) return { probes: [], diagnoses: [] }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-doctor-'))
  scope.defer(() => rmSync(folder, { recursive: true, force: true }))
  const proxies = new Map(names.map(({ name }) => [name, new Set<OutgoingProxy>()]))
  const failures = new Map<string, unknown>()
  const open = (database: string, of: Configuration, wrap: WrapTarget): Promise<Runtime> =>
    openRuntime(
      { configuration: withTargets(of, wrap), secrets, scope },
      { database: `sqlite:${join(folder, database)}` },
    )
  const recording: WrapTarget = (name, target) => ({
    ...target,
    create: (host) => usedProxies.run(proxies.get(name) ?? new Set(), async () => target.create(host)),
  })
  const diagnoses: Diagnosis[] = []
  let runtime: Runtime
  try {
    runtime = await within(millis, () => open('all.db', configuration, recording))
  } catch (error) {
    // One target or another object is the cause; the others can still be checked.
    const isolated: WrapTarget = (name, target) => {
      const { create } = recording(name, target)
      return {
        ...target,
        create: (host) => orUnavailable(millis, create(host), (reason) => failures.set(name, reason)),
      }
    }
    try {
      runtime = await open('targets.db', onlyTargets(configuration), isolated)
    } catch {
      const remedy = 'Correct what it names. Until then, targets are not checked.'
      return { probes: [], diagnoses: [{ level: 'problem', probe: 'targets', seen: reasonOf(error), advice: remedy }] }
    }
    if (failures.size === 0) {
      const remedy = 'Correct what it names: it is not served until then, nor is what needs it.'
      diagnoses.push({ level: 'problem', probe: 'objects', seen: reasonOf(error), advice: remedy })
    }
  }
  const probes = outside.map(
    ({ name, className }): Probe => ({
      probe: 'target',
      at: name,
      advice,
      proxies: proxies.get(name),
      run: async () => {
        if (!failures.has(name)) return [await lookUp(runtime.target(name), className, millis)]
        return [problem(`${className}: it can't be created: ${reasonOf(failures.get(name))}`, advice)]
      },
    }),
  )
  return { probes: [...probes, ...grantProbes(runtime, millis)], diagnoses }
}

/** Whether the TokenGrants of each cluster can be watched, and which of them don't count. */
const grantProbes = ({ grants }: Runtime, millis: number): Probe[] =>
  (grants?.clusters ?? []).map((name) => ({
    probe: 'grants',
    at: name,
    advice: grantAdvice,
    run: async () => {
      await grants?.known(name, millis - 100)
      const { accepted = 0, refused = [], failure } = grants?.describe(name) ?? {}
      if (failure !== undefined) return [problem(`TokenGrants can't be watched: ${reasonOf(failure)}`, grantAdvice)]
      const seen = `${accepted} TokenGrants count`
      if (refused.length === 0) return [ok(seen)]
      const some = refused.slice(0, shownGrants).join('; ')
      const advice = "Their teams see it in the objects' status. Change the grants, or sts.endpoints[].grants."
      return [warning(`${seen}, ${refused.length} do not: ${some}`, advice)]
    },
  }))

const shownGrants = 5
const grantAdvice =
  'Apply deploy/crds/tokengrants.yaml, and let the account of the target list and watch tokengrants and namespaces.'

type WrapTarget = (name: string, target: PreparedTarget) => PreparedTarget

const withTargets = (configuration: Configuration, wrap: WrapTarget): Configuration => ({
  ...configuration,
  targets: new Map(
    Array.from(configuration.targets, ([name, config]) => [name, { ...config, target: wrap(name, config.target) }]),
  ),
})

const onlyTargets = (configuration: Configuration): Configuration => ({
  ...configuration,
  applications: [],
  chains: new Map(),
  inserts: [],
  workflows: new Map(),
  authorizations: new Map(),
  reports: new Map(),
  jobs: new Map(),
  reconciliations: new Map(),
  notifiers: new Map(),
  stsEndpoints: [],
  issuers: [],
})

/** The target, or one without abilities if it fails or takes too long. */
async function orUnavailable(millis: number, made: Promise<Target>, fail: (reason: unknown) => void): Promise<Target> {
  try {
    return await within(millis, () => made)
  } catch (error) {
    fail(error)
    void made.then(
      (late) => late.close?.(),
      () => {},
    )
    return { findUser: refuse, createUser: refuse, syncUser: refuse, deleteUser: refuse }
  }
}

const refuse = (): Promise<never> => Promise.reject(new GatewayError('TARGET_UNREACHABLE', "it can't be created"))

async function lookUp(target: Target, className: string, millis: number): Promise<Finding> {
  const { health, millis: took = 0, problem: why } = await checkTarget(target, millis - 100, reasonOf)
  if (health === 'unchecked') {
    return warning(`${className} has no look-ups, so it was not called`, 'Check it with a workflow that uses it.')
  }
  if (health !== 'up') return problem(`${className}: ${why}`, advice)
  const seen = `${className} answered a look-up in ${took} ms`
  if (took <= slowMillis) return ok(seen)
  return warning(seen, 'Find out why it is slow: requests and workflows wait for several such answers.')
}
