import { resolve } from 'node:path'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { catalog } from '#catalog/catalog.ts'
import type { CommandIo } from '#cli/command-line/command-line.ts'
import { configurationText } from '#cli/command-line/configuration-text.ts'
import { isKubernetes, openConfigurationSource } from '#config/watch/open-source.ts'
import { parseHostPort } from '#kernel/address.ts'
import { environmentProxies } from '#protocols/http/outgoing-proxy.ts'
import { clientAddressText } from '#requests/listener/trusted-proxies.ts'
import { ownPlaces } from '#server/composition/private-files.ts'
import { type Faults, type Gateway, startGateway } from '#server/gateway.ts'
import type { LogOutput } from '#server/log/output.ts'
import { ConfigurationRefused } from '#server/reload.ts'
import { answerSupervisor, metricsOfAll, sendToSupervisor } from '#server/workers/answer-supervisor.ts'
import type { WorkerSettings } from '#server/workers/worker-messages.ts'
import { reasonOf, type ServePlan, type StopTimes, stopText } from './plan.ts'

interface Surroundings {
  readonly io: CommandIo
  readonly output: LogOutput
  /** Undefined if it is the only process. */
  readonly worker: WorkerSettings | undefined
  readonly faults: Faults
}

/** Runs a gateway in this process, alone or as a worker, until it is stopped. Returns the exit code. */
export async function runGateway(plan: ServePlan, surroundings: Surroundings): Promise<number> {
  const { values, config, databaseUrl, listenUrl } = plan
  const { io, output, worker, faults } = surroundings
  const { log, accessLog } = output
  const environment = process.env
  const proxies = environmentProxies().describe()
  try {
    const source = await openConfigurationSource({
      config,
      secretsFolder: values.secrets,
      kubeconfig: values.kubeconfig,
      environment,
      listenUrl,
      catalog,
      strictSecrets: true,
      ownPlaces: ownPlaces(resolve(values.data), databaseUrl),
      identity: workerIdentity(environment['POD_NAME'], worker?.worker),
      log,
    })
    const gateway = await startGateway({
      source,
      dataFolder: resolve(values.data),
      databaseUrl,
      strict: values.strict || environment['GATEHOUSE_STRICT'] === 'true',
      environment,
      listen: values.listen,
      metrics: values.metrics === 'off' || worker !== undefined ? undefined : values.metrics,
      tls: plan.tls,
      trustedProxies: values['trusted-proxy'],
      ...plan.limits,
      log,
      accessLog,
      faults,
      sharing: worker && {
        metricsAddress: worker.metricsAddress,
        metricsOfAll,
        onServed: (configuration) => sendToSupervisor({ kind: 'serves', configuration }),
      },
    })
    const url = environment['GATEHOUSE_URL'] ?? (parseHostPort(values.listen).port === 0 ? gateway.address : listenUrl)
    const welcome = isKubernetes(config)
      ? undefined
      : configurationText(source.folder, 'welcome.txt', { config, data: values.data, url })
    const lines = [
      ...(welcome === undefined ? [] : [...welcome.split('\n'), '']),
      `Listening on ${gateway.address}`,
      clientAddressText(values['trusted-proxy']),
      ...(proxies === undefined ? [] : [proxies]),
      ...(gateway.webhookAddress === undefined ? [] : [`Injector webhook on ${gateway.webhookAddress}`]),
      ...(gateway.metricsAddress === undefined ? [] : [`Metrics on ${gateway.metricsAddress}/metrics`]),
    ]
    setTimeout(releaseStartMemory, settledMillis).unref()
    const stopped = untilStopped(gateway, plan.stop, { io, worker })
    if (worker === undefined) lines.forEach(io.stderr)
    else {
      answerSupervisor(gateway.operations)
      sendToSupervisor({ kind: 'started', lines })
    }
    return await stopped
  } catch (error) {
    if (error instanceof ConfigurationRefused) for (const problem of error.problems) io.stderr(problem)
    throw error
  }
}

/** Workers of a pod compete for its leases, as pods do. */
const workerIdentity = (pod: string | undefined, worker: number | undefined): string | undefined =>
  pod === undefined || worker === undefined ? undefined : `${pod}/${worker}`

/** From the start until what the start needed is released. */
const settledMillis = 1000

/**
 * Gives back what only the start needed, such as parsed YAML: a sixth of the process. V8 keeps it until memory becomes
 * short, which an idle gateway never sees.
 */
function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

function untilStopped(
  gateway: Gateway,
  times: StopTimes,
  { io, worker }: Pick<Surroundings, 'io' | 'worker'>,
): Promise<number> {
  return new Promise((resolve) => {
    process.on('SIGHUP', () => void gateway.reload())
    let stopping = false
    const stop = (): void => {
      if (stopping) return
      stopping = true
      if (worker === undefined) io.stderr(stopText(times))
      gateway.startShutdown()
      setTimeout(drain, times.delaySeconds * 1000)
    }
    const drain = (): void => {
      const timer = setTimeout(() => {
        io.stderr('gatehouse serve: some requests did not finish in time and were cut off')
        resolve(1)
        process.exit(1)
      }, times.drainSeconds * 1000)
      timer.unref()
      gateway.close().then(
        () => resolve(0),
        (error: unknown) => {
          io.stderr(`gatehouse serve: ${reasonOf(error)}`)
          resolve(1)
        },
      )
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  })
}
