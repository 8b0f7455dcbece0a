import cluster from 'node:cluster'
import process from 'node:process'
import { type CommandIo, defineCommand } from '#cli/command-line/command-line.ts'
import { readServePlan, reasonOf, type ServePlan, serveOptions } from '#cli/serve/plan.ts'
import type { Faults } from '#server/gateway.ts'
import { openLogOutput } from '#server/log/output.ts'
import { hasColors } from '#server/log/text.ts'
import { takeWorkerSettings, type WorkerSettings } from '#server/workers/worker-messages.ts'

export async function serveCommand(args: string[], io: CommandIo, faults: Faults = {}): Promise<number> {
  const worker = takeWorkerSettings(process.env)
  const run = defineCommand({
    name: 'serve',
    about: 'Run the gateway. It reloads the configuration when it changes.',
    usage: '--config SOURCE [options]',
    options: serveOptions,
    examples: [
      'gatehouse serve --config config',
      'gatehouse serve --config kubernetes:identity --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key',
    ],
    describe: reasonOf,
    run: (values, _, output) => serve(readServePlan(values), { args, io: output, faults, worker }),
  })
  try {
    return await run(args, io)
  } finally {
    // The channel to the supervisor would keep the process alive.
    if (worker !== undefined) cluster.worker?.disconnect()
  }
}

interface Process {
  readonly args: readonly string[]
  readonly io: CommandIo
  readonly faults: Faults
  readonly worker: WorkerSettings | undefined
}

async function serve(plan: ServePlan, { args, io, faults, worker }: Process): Promise<number> {
  // Undefined for anything but a terminal.
  const isTerminal = process.stdout.isTTY === true
  const isText = worker?.logText ?? plan.logText ?? isTerminal
  const isColored = worker?.logColors ?? hasColors(process.env, isTerminal)
  const output = openLogOutput({ level: plan.logLevel, isText, isColored, worker: worker?.worker })
  try {
    if (plan.workers === 1 || worker !== undefined) {
      const { runGateway } = await import('#cli/serve/gateway.ts')
      return await runGateway(plan, { io, output, worker, faults })
    }
    // A supervisor does not load what only gateways need.
    const { runWorkers } = await import('#cli/serve/workers.ts')
    return await runWorkers(plan, { io, output, args, isText, isColored })
  } finally {
    output.flush()
  }
}
