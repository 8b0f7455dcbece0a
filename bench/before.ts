import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { compare } from './comparison.ts'
import type { BenchOptions } from './options.ts'
import { type Row, say } from './table.ts'

/**
 * Builds a commit in a clone below `folder`, which the caller removes, and measures each part of it and of the working tree in
 * turns. The tool is this one for both, on the code and schema of each.
 */
export async function measureBefore(
  folder: string,
  commit: string,
  parts: readonly string[],
  { sizes, turns, quick }: BenchOptions,
): Promise<void> {
  const name = nameOf(commit)
  const clone = join(folder, 'clone')
  // PostgreSQL of the clone runs as another user if this is root.
  chmodSync(folder, 0o755)
  say(`building ${name.slice(0, 12)}`)
  git('clone', '--quiet', '--shared', '--no-checkout', resolve('.'), clone)
  git('-C', clone, 'checkout', '--quiet', '--detach', name)
  // It also builds the portal.
  execFileSync('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: clone,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  rmSync(join(clone, 'bench'), { recursive: true })
  cpSync('bench', join(clone, 'bench'), { recursive: true })
  // The tool may need parts that the tests of the commit did not have. What they had fits its code.
  cpSync('test/support', join(clone, 'test/support'), { recursive: true, force: false })
  if (!loads(clone)) {
    say('the tool of the working tree does not fit that commit, which is measured by its own')
    git('-C', clone, 'checkout', '--quiet', '--', 'bench', 'test/support')
  }
  const before: Row[][] = []
  const after: Row[][] = []
  const args = [...sizes.map(String), ...(quick ? ['--quick'] : [])]
  const failed = new Set<string>()
  for (const part of parts) {
    for (let turn = 1; turn <= turns; turn++) {
      for (const [label, cwd, rows] of [
        ['before', clone, before],
        ['after', resolve('.'), after],
      ] as const) {
        say(`\n${part}, turn ${turn} of ${turns}, ${label}`)
        const found = await measure(cwd, [part, ...args], join(folder, 'rows.json'))
        rows.push(found ?? [])
        // An older commit does not have everything that is measured today; its lines say so.
        if (found === undefined && label === 'after') failed.add(part)
      }
    }
  }
  say(`\nbefore is ${name.slice(0, 12)}, after is the working tree; medians of ${turns} turns`)
  say(compare(before, after))
  // After the table: what was measured took long.
  if (failed.size > 0) throw new Error(`these parts failed: ${[...failed].join(', ')}`)
}

const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim()

function nameOf(commit: string): string {
  const args = ['rev-parse', '--verify', `${commit}^{commit}`]
  try {
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    throw new Error(`no commit "${commit}" in this repository`)
  }
}

/** Whether the tool finds the code that it imports: rooms of the code may have moved since that commit. */
const loads = (clone: string): boolean =>
  spawnSync(join(clone, 'bin/node'), ['bench/run.ts', '--help'], { cwd: clone, stdio: 'ignore' }).status === 0

/** Undefined if the measurement failed, for a reason that it printed. */
async function measure(cwd: string, args: readonly string[], file: string): Promise<Row[] | undefined> {
  rmSync(file, { force: true })
  const child = spawn(join(cwd, 'bin/node'), ['bench/run.ts', ...args, '--rows', file], { cwd, stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0 ? (JSON.parse(readFileSync(file, 'utf8')) as Row[]) : undefined
}
