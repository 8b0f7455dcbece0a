import process from 'node:process'
import type { CommandIo } from '#cli/command-line/command-line.ts'
import { parseHostPort } from '#kernel/address.ts'
import { limitOperations } from '#requests/listener/http-limits.ts'
import { ReservedPort } from '#requests/listener/reserved-port.ts'
import type { LogOutput } from '#server/log/output.ts'
import { createConnectionMetrics } from '#server/metrics/connection-metrics.ts'
import { createOperationsApp } from '#server/operations.ts'
import { Supervisor } from '#server/workers/supervisor.ts'
import { type ServePlan, stopText } from './plan.ts'

interface Surroundings {
  readonly io: CommandIo
  readonly output: LogOutput
  /** Of `serve`. */
  readonly args: readonly string[]
  readonly isText: boolean
  readonly isColored: boolean
}

/** Runs a gateway in several processes, with one metrics listener for all, until it is stopped. Returns the exit code. */
export async function runWorkers(plan: ServePlan, surroundings: Surroundings): Promise<number> {
  const { values, workers, stop: times, limits } = plan
  const { io, output, args, isText, isColored } = surroundings
  const { log } = output
  const supervisor = new Supervisor({
    count: workers,
    log,
    writeOutput: (lines) => output.pass(lines),
    writeError: (lines) => process.stderr.write(lines),
  })
  // It opens first and closes last, so that operators can watch a start and a drain.
  const operations =
    values.metrics === 'off'
      ? undefined
      : createOperationsApp({
          operations: supervisor,
          limits: limitOperations(limits.connectionLimits),
          meter: createConnectionMetrics(supervisor.registry),
          log,
        })
  try {
    const metricsAddress = await operations?.listen(parseHostPort(values.metrics))
    const stopped = new Promise<number>((resolve) => {
      let stopping = false
      const stop = (): void => {
        if (stopping) return
        stopping = true
        io.stderr(stopText(times))
        supervisor.stop(times.delaySeconds + times.drainSeconds).then(resolve)
      }
      process.on('SIGTERM', stop)
      process.on('SIGINT', stop)
      process.on('SIGHUP', () => supervisor.reload())
    })
    // The first worker opens it after it has migrated the database, which is too late to find a port in use.
    await (await ReservedPort.open(parseHostPort(values.listen))).close()
    const started = await supervisor.start({
      args: ['serve', ...args],
      settings: { logText: isText, logColors: isColored, metricsAddress },
    })
    if (typeof started === 'number') return started
    started.forEach(io.stderr)
    io.stderr(`Workers: ${workers}`)
    if (metricsAddress !== undefined) io.stderr(`Metrics on ${metricsAddress}/metrics`)
    return await stopped
  } finally {
    await operations?.close()
  }
}
