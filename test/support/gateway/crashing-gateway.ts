import process from 'node:process'
import { serveCommand } from '#cli/commands/serve.ts'
import { type CrashHook, crashPoints, noCrash } from '#workflows/steps/workflow-services.ts'

/**
 * Entry point of a gateway that kills itself, like SIGKILL, when it passes GATEHOUSE_CHAOS_POINT for the
 * GATEHOUSE_CHAOS_COUNT-th time. Its claims expire after GATEHOUSE_CHAOS_LEASE_MILLIS. Accepts the arguments of
 * `gatehouse`.
 */
function crashHook(): CrashHook {
  const wanted = crashPoints.find((point) => point === process.env['GATEHOUSE_CHAOS_POINT'])
  if (wanted === undefined) return noCrash
  let left = Number(process.env['GATEHOUSE_CHAOS_COUNT'] ?? 1)
  return (point) => {
    if (point === wanted && --left === 0) process.kill(process.pid, 'SIGKILL')
  }
}

const [, , , ...args] = process.argv
const io = {
  stdout: (line: string) => process.stdout.write(`${line}\n`),
  stderr: (line: string) => process.stderr.write(`${line}\n`),
}
const leaseMillis = Number(process.env['GATEHOUSE_CHAOS_LEASE_MILLIS'])
process.exitCode = await serveCommand(args, io, { crash: crashHook(), leaseMillis })
