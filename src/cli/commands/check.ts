import { resolve } from 'node:path'
import { catalog } from '#catalog/catalog.ts'
import type { CommandIo, CommandOutput } from '#cli/command-line/command-line.ts'
import {
  checkFile,
  checkOptions,
  defineCommand,
  messageOf,
  required,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { checkListenOptions, databaseOptions, listenOptions, sourceOptions } from '#cli/command-line/options.ts'
import { ConfiguredObjects, type ServeSettings } from '#cli/production/production-check.ts'
import { runProductionChecks } from '#cli/production/production-checks.ts'
import { temporaryFolders } from '#cli/production/serving-checks.ts'
import { openConfigurationSource } from '#config/watch/open-source.ts'
import { silentLogger } from '#kernel/logger.ts'
import { version } from '#kernel/version.ts'
import { checkAuditKeys } from '#keys/audit-keys.ts'
import { checkSecretKeys } from '#keys/secret-keys.ts'
import { ownPlaces } from '#server/composition/private-files.ts'
import { checkDocument, checkedSummary, checkFormats } from './check-formats.ts'

/** As for `serve`; only with `--production`. */
const servingOptions = { ...databaseOptions, ...listenOptions }

const options = {
  ...sourceOptions,
  strict: { about: 'Treat warnings as errors' },
  production: {
    about: `Also check whether a gateway is ready for production; see docs/guides/hardening.md.
Set the options below, and the variables GATEHOUSE_DATABASE, GATEHOUSE_SECRET_KEY, GATEHOUSE_AUDIT_KEY
and GATEHOUSE_URL, as for serve`,
  },
  output: {
    value: 'FORMAT',
    default: 'text',
    choices: Object.keys(checkFormats),
    about: `${Object.keys(checkFormats).join(', ')}: for people, for programs, for code scanners, or as annotations of
GitHub Actions`,
  },
  ...servingOptions,
} as const
type CheckValues = Values<typeof options>

export const checkCommand = (args: string[], io: CommandIo): Promise<number> =>
  defineCommand({
    name: 'check',
    about: `Validate a configuration. Prints each problem as FILE:LINE:COLUMN: PATH: MESSAGE, then how many objects serve
would serve and set aside, and because of what. If the configuration is valid, standard error says what was checked.`,
    usage: '--config SOURCE [options]\n--config SOURCE --production [options of serve]',
    options,
    notes: 'Exit code: 0 if the configuration is valid, 1 if there is an error or a production check fails.',
    examples: [
      'gatehouse check --config config --strict',
      'gatehouse check --config config --output sarif > gatehouse.sarif',
    ],
    run: (values, _, output) => {
      const misplaced = Object.keys(servingOptions).find((name) =>
        args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`)),
      )
      if (!values.production && misplaced !== undefined) throw new WrongUsage(`--${misplaced} requires --production`)
      return check(values, output)
    },
  })(args, io)

async function check(values: CheckValues, io: CommandOutput): Promise<number> {
  const { strict } = values
  const config = required(values.config, 'config')
  const settings = values.production ? readSettings(values) : undefined
  const source = await openConfigurationSource({
    config,
    secretsFolder: values.secrets,
    kubeconfig: values.kubeconfig,
    // As for serve, which sets an object without its secret aside.
    strictSecrets: values.production,
    keepObjects: values.production,
    ownPlaces: ownPlaces(resolve(values.data), settings?.databaseUrl),
    environment: process.env,
    catalog,
    log: silentLogger,
  })
  try {
    const loaded = await source.load()
    const { issues, configuration, objects = [] } = loaded
    const hasErrors = issues.some(({ level }) => level === 'error')
    // A configuration with errors can't be checked further.
    const checked =
      settings === undefined || configuration === undefined || hasErrors
        ? []
        : runProductionChecks({ configuration, objects: new ConfiguredObjects(objects, catalog), settings })
    const isWrong = hasErrors || (strict && issues.length > 0)
    const fails = checked.some(({ level }) => level === 'fail' || (level === 'warn' && strict))
    const isValid = !isWrong && !fails
    const result = { config, version: await version(), isValid, loaded, checked }
    for (const line of checkFormats[values.output]?.(result) ?? []) io.stdout(line)
    io.result(checkDocument(result))
    if (isValid && values.output === 'text') io.stderr(checkedSummary(result))
    return isValid ? 0 : 1
  } finally {
    await source.close()
  }
}

/** Throws WrongUsage that names the wrong option or variable. */
function readSettings(values: CheckValues): ServeSettings {
  const { data, listen, metrics, 'tls-cert': certFile, 'tls-key': keyFile } = values
  const environment = process.env
  const databaseUrl = values.database ?? environment['GATEHOUSE_DATABASE']
  checkListenOptions(values, databaseUrl)
  checkOptions({
    'tls-cert': () => certFile === undefined || checkFile(certFile),
    'tls-key': () => keyFile === undefined || checkFile(keyFile),
  })
  try {
    checkSecretKeys(environment)
    checkAuditKeys(environment)
  } catch (error) {
    throw new WrongUsage(messageOf(error))
  }
  return {
    listen,
    metrics: metrics === 'off' ? undefined : metrics,
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    trustedProxies: values['trusted-proxy'],
    data,
    temporary: temporaryFolders,
    databaseUrl,
    environment,
  }
}
