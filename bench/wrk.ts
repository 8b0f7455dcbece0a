import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { LoadResult } from './load.ts'

/** `wrk` writes its usage and exits with 1. */
export const hasWrk: boolean = spawnSync('wrk', ['--version']).error === undefined

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r' }
const escapeLua = (text: string): string => text.replace(/[\\"\n\r]/g, (character) => escapes[character] ?? '')
const mark = 'figures: '

/**
 * A script that sends these requests in order, again and again, and prints the figures as JSON. One string, separated by
 * a byte that no request contains, instead of a table, since LuaJIT limits the constants of a function.
 */
export const wrkScript = (requests: readonly string[]): string => `
local requests, sent = {}, 0
local all = "${requests.map(escapeLua).join('\\001')}"
for one in string.gmatch(all, "[^\\1]+") do requests[#requests + 1] = one end

function request()
  sent = sent % #requests + 1
  return requests[sent]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '${mark}{"count":%d,"micros":%d,"p50":%d,"p99":%d,"refused":%d,"broken":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout
  ))
end
`

/** The figures of the script's line; throws if an answer was an error (a status above 399) or missing. */
export function parseWrk(output: string): LoadResult {
  const line = output.split('\n').find((one) => one.startsWith(mark))
  if (line === undefined) throw new Error(`wrk printed no figures: ${output.slice(0, 600)}`)
  const { count, micros, p50, p99, refused, broken } = JSON.parse(line.slice(mark.length)) as Record<string, number>
  if (refused !== 0 || broken !== 0) {
    throw new Error(`wrk: ${refused} of ${count} answers had an error status, ${broken} connections failed`)
  }
  if (!count || !micros) throw new Error('wrk: no request was answered')
  return { count, perSecond: count / (micros / 1_000_000), p50: (p50 ?? 0) / 1000, p99: (p99 ?? 0) / 1000 }
}

/** In one thread, as our own generator. It knows whole seconds only. */
export async function runWrk(
  port: number,
  connections: number,
  seconds: number,
  requests: readonly string[],
): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-wrk-'))
  try {
    const script = join(folder, 'requests.lua')
    writeFileSync(script, wrkScript(requests), 'latin1')
    const duration = `${Math.max(1, Math.round(seconds))}s`
    const args = ['-t1', `-c${connections}`, `-d${duration}`, '--timeout', '10s', '-s', script]
    const { stdout } = await promisify(execFile)('wrk', [...args, `http://127.0.0.1:${port}/`])
    return parseWrk(stdout)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
