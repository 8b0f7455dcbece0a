import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

/**
 * What is in a folder as a tar file that depends on names, contents and modes only: entries are sorted, and all have the
 * time of the commit. What belongs to root can be written by root alone. By GNU tar, which every Debian has.
 * Links stay links, unless they are followed.
 */
export function tarOf(
  folder: string,
  names: readonly string[],
  { owner = 0, follow = false }: { readonly owner?: number; readonly follow?: boolean } = {},
): Buffer {
  const same = ['--sort=name', '--format=posix', '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime']
  const who = ['--numeric-owner', `--owner=${owner}`, `--group=${owner}`, `--mtime=@${commitSeconds()}`]
  if (owner === 0) who.push('--mode=u+rw,go+rX,go-w')
  if (follow) who.push('--dereference')
  return execFileSync('tar', ['-C', folder, ...same, ...who, '-cf', '-', '--', ...names], {
    env: { ...process.env, LC_ALL: 'C' },
    maxBuffer: Number.POSITIVE_INFINITY,
  })
}

/** Node.js writes no time and no name into the header. */
export const compressed = (content: Buffer): Buffer => gzipSync(content, { level: 6 })

export function writeArchive(file: string, folder: string, names: readonly string[], follow = false): void {
  writeFileSync(file, compressed(tarOf(folder, names, { follow })))
}

export const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex')

let seconds: string | undefined

/** The time of the commit that is released, or that of `SOURCE_DATE_EPOCH`, so that two builds have the same bytes. */
export function commitSeconds(): string {
  seconds ??=
    process.env['SOURCE_DATE_EPOCH'] ?? execFileSync('git', ['log', '-1', '--format=%ct'], { encoding: 'utf8' })
  return seconds.trim()
}
