import { join } from 'node:path'

/** For a POSIX shell. */
export const quoted = (text: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** Parts of commands for a folder that `init` has made. */
export function folderCommands(folder: string, urlPort: string, isLocal = false) {
  const path = (...names: readonly string[]): string => quoted(join(folder, ...names))
  const environment = path('gatehouse.env')
  const source = `--config ${path('config')} --data ${path('data')}`
  const tls = `--tls-cert ${path('tls', 'tls.crt')} --tls-key ${path('tls', 'tls.key')}`
  const port = urlPort === '' ? '8443' : urlPort
  return {
    // A shell looks for a name without a slash in its PATH.
    loadSecrets: `set -a; . ${environment.includes('/') ? environment : `./${environment}`}; set +a`,
    source,
    tls: isLocal ? '' : tls,
    port,
    serving: isLocal ? `${source} --listen 127.0.0.1:${port}` : `${source} --listen 0.0.0.0:${port} ${tls}`,
  }
}
