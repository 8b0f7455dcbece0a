import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { catalog } from '#catalog/catalog.ts'
import type { CommandOutput, Values } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  required,
  terminalLine,
  terminalWidth,
  WrongUsage,
  wholeNumber,
} from '#cli/command-line/command-line.ts'
import {
  checkListenOptions,
  databaseOptions,
  listenOptions,
  outputOption,
  sourceOptions,
} from '#cli/command-line/options.ts'
import { auditProbes } from '#cli/doctor/audit-probes.ts'
import { databaseProbe } from '#cli/doctor/database-probe.ts'
import { type Diagnosis, ok, type Probe, problem, reasonOf, runProbes, warning } from '#cli/doctor/diagnosis.ts'
import { machineProbes, secretFilesProbe } from '#cli/doctor/machine-probes.ts'
import { issuerProbe, publicAddressProbes } from '#cli/doctor/network-probes.ts'
import { targetProbes } from '#cli/doctor/target-probes.ts'
import { ConfiguredObjects, type ServeSettings } from '#cli/production/production-check.ts'
import { closedModes, findBadCertificates, findUnsafeKeys } from '#cli/production/serving-checks.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { causeText, servedCount, titleOf } from '#config/load/set-aside.ts'
import { isKubernetes, openConfigurationSource } from '#config/watch/open-source.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'

const options = {
  ...sourceOptions,
  ...databaseOptions,
  'tls-cert': listenOptions['tls-cert'],
  'tls-key': listenOptions['tls-key'],
  timeout: { value: 'SECONDS', default: '5', about: 'Time limit of each probe, from 1 to 60' },
  ...outputOption,
} as const
type DoctorValues = Values<typeof options>

export const doctorCommand = defineCommand({
  name: 'doctor',
  about: `Check what a gateway needs: the machine, files, database, public address, issuers and targets. Each line says
what was seen and what to do. Changes nothing and shows no secrets.`,
  usage: '--config SOURCE [options of serve]',
  options,
  notes: 'Exit code: 0 if there is no problem, also with warnings; 1 if there is one.',
  examples: [
    'gatehouse doctor --config config --data data',
    'gatehouse doctor --config config --timeout 20 --output json',
  ],
  run: (values, _, io) => doctor(values, io),
})

async function doctor(values: DoctorValues, io: CommandOutput): Promise<number> {
  const config = required(values.config, 'config')
  const seconds = wholeNumber(values.timeout, 1, 60)
  if (seconds === undefined) throw new WrongUsage('--timeout must be a whole number from 1 to 60')
  const databaseUrl = values.database ?? process.env['GATEHOUSE_DATABASE']
  checkListenOptions({ ...values, listen: '127.0.0.1:0', metrics: 'off', 'trusted-proxy': [] }, databaseUrl)
  const scope = new Scope()
  try {
    const probes = [...machineProbes(values.data), databaseProbe(databaseUrl, values.data)]
    const { configured, diagnoses } = await configuredProbes({
      values,
      config,
      databaseUrl,
      millis: 1000 * seconds,
      scope,
    })
    const found = [...diagnoses, ...(await runProbes([...probes, ...configured], 1000 * seconds))].map((one) => ({
      ...one,
      seen: withoutSecrets(one.seen),
      ...(one.advice === undefined ? {} : { advice: withoutSecrets(one.advice) }),
    }))
    for (const one of found) io.stdout(textOf(one))
    const isHealthy = found.every(({ level }) => level !== 'problem')
    io.result({ healthy: isHealthy, findings: found })
    return isHealthy ? 0 : 1
  } finally {
    await scope.close()
  }
}

const words = { ok: 'OK     ', warning: 'WARNING', problem: 'PROBLEM' } as const

/** `PROBLEM target crm: what was seen. What to do.` */
function textOf({ level, probe, at, seen, advice }: Diagnosis): string {
  const line = `${words[level]} ${probe}${at === undefined ? '' : ` ${at}`}: ${seen}${advice === undefined ? '' : `. ${advice}`}`
  // Advice must stay readable on a narrow terminal, so only control characters are removed.
  return terminalLine(line, Math.max(terminalWidth(), 2000))
}

interface DoctorParts {
  readonly values: DoctorValues
  readonly config: string
  readonly databaseUrl: string | undefined
  readonly millis: number
  readonly scope: Scope
}

/** The probes of what a configuration names. A configuration that can't be read is a problem of its own. */
async function configuredProbes(
  parts: DoctorParts,
): Promise<{ configured: readonly Probe[]; diagnoses: readonly Diagnosis[] }> {
  const { values, config, millis, scope } = parts
  const failed = (seen: string, fix = 'Correct it.'): Diagnosis => ({
    level: 'problem',
    probe: 'configuration',
    at: config,
    seen,
    advice: `${fix} Until then, targets, issuers and the public address are not checked.`,
  })
  try {
    const source = scope.own(
      await openConfigurationSource({
        config,
        secretsFolder: values.secrets,
        kubeconfig: values.kubeconfig,
        answerMillis: millis,
        strictSecrets: true,
        keepObjects: true,
        environment: process.env,
        catalog,
        log: silentLogger,
      }),
    )
    const { configuration, issues, found, objects = [] } = await source.load()
    const errors = issues.filter(({ level }) => level === 'error' || configuration === undefined)
    if (configuration === undefined)
      return { configured: [], diagnoses: errors.map((issue) => failed(formatIssue(issue))) }
    const aside = found.flatMap((object): Diagnosis[] => {
      const { cause } = object
      if (cause === undefined) return []
      const seen = `${titleOf(object)} is set aside because of ${causeText(cause)}`
      const what = cause.own ? 'it' : cause.at === undefined ? `the name, or add ${cause.object}` : cause.object
      const advice = `Correct ${what}. Until then, ${titleOf(object)} is not served. Run gatehouse check for all problems.`
      return [
        {
          level: 'problem',
          probe: 'configuration',
          at: cause.own ? (cause.at ?? object.file) : object.file,
          seen,
          advice,
        },
      ]
    })
    const named = new ConfiguredObjects(objects, catalog)
    const publicUrl = process.env['GATEHOUSE_URL'] ?? configuration.publicUrl
    const issuers = new Set(
      named
        .mechanisms()
        // The issuer of auth.Totp is the name that authenticator apps show.
        .filter(({ className, params }) => className !== 'auth.Totp' && params.values('idpURL').length === 0)
        .flatMap(({ params }) => params.values('issuer')),
    )
    const { diagnoses, probes } = await targetProbes(configuration, { secrets: source.secrets, millis, scope })
    const folder = values.secrets ?? (isKubernetes(config) ? undefined : join(config, 'secrets'))
    return {
      configured: [
        ...publicAddressProbes(publicUrl),
        ...auditProbes(configuration, { data: values.data, databaseUrl: parts.databaseUrl }),
        ...filesProbes(parts, configuration, named, publicUrl),
        secretFilesProbe(folder === undefined ? [] : [folder]),
        ...Array.from(issuers, (issuer) => issuerProbe(issuer, publicUrl)),
        ...probes,
      ],
      diagnoses: [
        ...aside,
        { level: 'ok', probe: 'configuration', at: config, seen: `${servedCount(found)} objects are served` },
        ...diagnoses,
      ],
    }
  } catch (error) {
    const fix = isKubernetes(config)
      ? 'Check that this machine reaches the API server, and the rights of the account.'
      : undefined
    return { configured: [], diagnoses: [failed(reasonOf(error), fix)] }
  }
}

/** What `check --production` also looks at: modes of keys, and the certificate of the listener. */
function filesProbes(
  { values, databaseUrl }: DoctorParts,
  configuration: Configuration,
  objects: ConfiguredObjects,
  publicUrl: string | undefined,
): Probe[] {
  const [certFile, keyFile] = [values['tls-cert'], values['tls-key']]
  const tls = certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile }
  const settings: ServeSettings = {
    listen: '127.0.0.1:0',
    metrics: undefined,
    tls,
    trustedProxies: [],
    data: values.data,
    temporary: [],
    databaseUrl,
    environment: process.env,
  }
  const setup = { configuration, objects, settings }
  const keys: Probe = {
    probe: 'keys',
    advice: 'Check that this user can read the files.',
    run: async () => {
      // A gateway creates its data folder with the right mode.
      if (!existsSync(values.data)) return [ok('the data folder does not exist yet: serve creates it')]
      const found = findUnsafeKeys(setup)
      if (found.length === 0) return [ok('closed to other users')]
      return found.map(({ at, message, remedy = closedModes }) => problem(`${at}: ${message}`, remedy))
    },
  }
  if (tls === undefined) return [keys]
  return [
    keys,
    {
      probe: 'certificate',
      at: tls.certFile,
      advice: 'Check that both files are PEM, and that this user can read them.',
      run: async () => {
        const found = findBadCertificates(setup).map(
          ({ level, message, remedy = 'Replace certificate and key together.' }) =>
            (level === 'fail' ? problem : warning)(message, remedy),
        )
        if (found.length > 0) return found
        const certificate = new X509Certificate(readSmallFileSync(tls.certFile))
        const host = publicUrl === undefined ? undefined : URL.parse(publicUrl)?.hostname
        if (host !== undefined && isIP(host) === 0 && certificate.checkHost(host) === undefined) {
          return [problem(`it is not for ${host}`, 'Use a certificate that has the host of GATEHOUSE_URL as a name.')]
        }
        return [ok(`it is valid until ${new Date(certificate.validTo).toISOString()}`)]
      },
    },
  ]
}
