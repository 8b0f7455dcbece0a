import { resolve } from 'node:path'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/located-issue.ts'
import { checkAuditKeys } from '#engine/keys/audit-keys.ts'
import { checkSecretKeys } from '#engine/keys/secret-keys.ts'
import { parseHostPort } from '#kernel/address.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Catalog } from '#sdk/module/catalog.ts'
import type { CommandIo } from '#server/commands/command-line.ts'
import {
  checkFile,
  firstWrong,
  messageOf,
  readArguments,
  runAction,
  wrongUsage,
} from '#server/commands/command-line.ts'
import { openConfigurationSource } from '#server/open-configuration-source.ts'
import { ownPlaces } from '#server/private-files.ts'
import { ConfiguredObjects, type ServeSettings } from '#server/production/production-check.ts'
import { formatChecked, runProductionChecks } from '#server/production/production-checks.ts'
import { temporaryFolders } from '#server/production/serving-checks.ts'
import { TrustedProxies } from '#server/trusted-proxies.ts'
import { readAddress } from '#storage/client/databases.ts'

const usage = `Validate a configuration. Prints each problem as FILE:LINE:COLUMN: PATH: MESSAGE, and nothing if there is none.

Usage:
  gatehouse check --config SOURCE [options]
  gatehouse check --config SOURCE --production [options of serve]

Options:
  --config SOURCE    Configuration folder, or kubernetes:NAMESPACE[/CONFIGMAP]
  --kubeconfig FILE  How to reach the cluster (default $KUBECONFIG, otherwise the pod's service account)
  --secrets DIR      Folder of secret files, NAME/KEY (default secrets/ in the configuration folder)
  --strict           Treat warnings as errors
  --production       Also check whether a gateway is ready for production; see docs/guides/hardening.md.
                     Set --data, --database, --listen, --metrics, --tls-cert, --tls-key and --trusted-proxy, and the
                     variables GATEHOUSE_DATABASE, GATEHOUSE_SECRET_KEY, GATEHOUSE_AUDIT_KEY and GATEHOUSE_URL, as for serve
  --json             Print the production checks as JSON, one object per line

Exit code: 0 if the configuration is valid, 1 if there is an error or a production check fails.`

const defaultData = '.gatehouse'

const options = {
  config: { type: 'string' },
  kubeconfig: { type: 'string' },
  secrets: { type: 'string' },
  strict: { type: 'boolean' },
  production: { type: 'boolean' },
  json: { type: 'boolean' },
  data: { type: 'string', default: defaultData },
  database: { type: 'string' },
  listen: { type: 'string', default: '127.0.0.1:8080' },
  metrics: { type: 'string', default: '127.0.0.1:8081' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'trusted-proxy': { type: 'string', multiple: true },
} as const

export async function checkCommand(args: string[], io: CommandIo): Promise<number> {
  const read = readArguments(args, { command: 'check', usage, options, positionals: 0 }, io)
  if ('exit' in read) return read.exit
  const { config, kubeconfig, secrets, strict, production, json } = read.values
  const wrong = (message: string): number => wrongUsage('check', message, io)
  if (config === undefined) return wrong('--config is required')
  const misplaced = productionOptions.find((name) => args.some((arg) => arg === name || arg.startsWith(`${name}=`)))
  if (production !== true && misplaced !== undefined) {
    return wrong(`${misplaced} requires --production`)
  }
  let settings: ServeSettings | undefined
  try {
    settings = production === true ? readSettings(read.values, process.env) : undefined
  } catch (error) {
    return wrong(messageOf(error))
  }
  const how = { secretsFolder: secrets, strict, kubeconfig, production: settings, json }
  return runAction('check', io, () => checkConfiguration(config, catalog, how, io))
}

export interface CheckOptions {
  readonly strict?: boolean | undefined
  readonly secretsFolder?: string | undefined
  readonly kubeconfig?: string | undefined
  /** Verifies that a gateway with these settings is ready for production. */
  readonly production?: ServeSettings | undefined
  readonly json?: boolean | undefined
}

const productionOptions = [
  '--data',
  '--database',
  '--listen',
  '--metrics',
  '--tls-cert',
  '--tls-key',
  '--trusted-proxy',
  '--json',
]

/** Throws an Error that names the wrong option or variable. */
function readSettings(
  values: { readonly [name in 'data' | 'listen' | 'metrics']: string } & {
    readonly database?: string | undefined
    readonly 'tls-cert'?: string | undefined
    readonly 'tls-key'?: string | undefined
    readonly 'trusted-proxy'?: readonly string[] | undefined
  },
  environment: Readonly<Record<string, string | undefined>>,
): ServeSettings {
  const {
    data,
    listen,
    metrics,
    'tls-cert': certFile,
    'tls-key': keyFile,
    'trusted-proxy': trustedProxies = [],
  } = values
  const databaseUrl = values.database ?? environment['GATEHOUSE_DATABASE']
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new Error('--tls-cert and --tls-key require each other')
  const wrong = firstWrong([
    ['--listen', () => parseHostPort(listen)],
    ['--metrics', () => metrics === 'off' || parseHostPort(metrics)],
    ['--database', () => databaseUrl === undefined || readAddress(databaseUrl)],
    ['--trusted-proxy', () => new TrustedProxies(trustedProxies)],
    ['--tls-cert', () => certFile === undefined || checkFile(certFile)],
    ['--tls-key', () => keyFile === undefined || checkFile(keyFile)],
  ])
  if (wrong !== undefined) throw new Error(wrong)
  checkSecretKeys(environment)
  checkAuditKeys(environment)
  return {
    listen,
    metrics: metrics === 'off' ? undefined : metrics,
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    trustedProxies,
    data,
    temporary: temporaryFolders,
    databaseUrl,
    environment,
  }
}

/** Checks with any catalog. Throws if the configuration can't be reached. */
export async function checkConfiguration(
  config: string,
  modules: Catalog,
  { strict, secretsFolder, kubeconfig, production, json }: CheckOptions,
  io: CommandIo,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  const places = { config, secretsFolder, kubeconfig }
  const keepObjects = production !== undefined
  const own = ownPlaces(resolve(production?.data ?? defaultData), production?.databaseUrl)
  const loading = { strictSecrets: false, keepObjects, ownPlaces: own }
  const options = { ...places, ...loading, environment, catalog: modules, log: silentLogger }
  const source = await openConfigurationSource(options)
  try {
    const { issues, configuration, objects = [] } = await source.load()
    const print = json === true ? io.stderr : io.stdout
    for (const issue of issues) print(formatIssue(issue))
    const isWrong = issues.some(({ level }) => level === 'error' || strict === true)
    if (production === undefined || configuration === undefined) return isWrong ? 1 : 0
    const setup = { configuration, objects: new ConfiguredObjects(objects, modules), settings: production }
    const checked = runProductionChecks(setup)
    for (const line of checked) io.stdout(json === true ? JSON.stringify(line) : formatChecked(line))
    const fails = checked.some(({ level }) => level === 'fail' || (level === 'warn' && strict === true))
    return isWrong || fails ? 1 : 0
  } finally {
    await source.close()
  }
}
