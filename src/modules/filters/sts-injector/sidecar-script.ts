import { readFileSync } from 'node:fs'

const source = readFileSync(new URL('./sidecar.sh', import.meta.url), 'utf8')

/** What injected sidecars run: `sidecar.sh` without its comments, since every pod carries a copy. */
export const sidecarScript = source
  .split('\n')
  .filter((line) => !/^\s*(?:#.*)?$/.test(line))
  .join('\n')
