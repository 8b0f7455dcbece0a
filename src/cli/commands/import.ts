import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { catalog } from '#catalog/catalog.ts'
import {
  type CommandIo,
  type CommandOutput,
  commandName,
  defineCommand,
  required,
  terminalLine,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { checkNewFolder, writeNewFolder } from '#cli/command-line/new-folder.ts'
import { databaseOptions, outputOption, sourceOptions } from '#cli/command-line/options.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { kubernetesPlace } from '#config/watch/open-source.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type ImportPlan, planImport } from '#openunison/import/import-plan.ts'
import { importReport } from '#openunison/import/import-report.ts'
import { type OpenUnisonSource, openNamespace, openRenderedSource } from '#openunison/import/openunison-source.ts'
import { exportStart } from '#server/move/export-format.ts'

const options = {
  ...databaseOptions,
  by: { value: 'NAME', about: 'With FILE: name of the operator, for the audit (default the system user)' },
  openunison: {
    value: 'SOURCE',
    about: 'kubernetes:NAMESPACE, or a folder or file with rendered charts or exported objects',
  },
  out: { value: 'FOLDER', about: 'The new configuration folder; must be new or empty' },
  'with-secrets': { about: 'Also write the secrets that objects name, as files that only you can read' },
  kubeconfig: sourceOptions.kubeconfig,
  ...outputOption,
} as const

export const importCommand = (args: string[], io: CommandIo): Promise<number> =>
  defineCommand({
    name: 'import',
    about: `Read what "gatehouse export" wrote into a new database; or, with --openunison, make a configuration folder of an
installation of OpenUnison: objects that can't be served are set aside, and what to do about them is printed.`,
    usage: 'FILE [--data DIR | --database URL]\n--openunison SOURCE --out FOLDER [options]',
    arguments: ['[FILE]'],
    options,
    notes: `With FILE ("-" is standard input), the database must be new or empty, and the key of the exporting gateway be in GATEHOUSE_SECRET_KEY or keys/ of the
data folder. All is imported, or nothing. See docs/guides/upgrading.md.
With --openunison, nothing is changed in the cluster. Exit code: 0 if the folder was written, 1 otherwise.`,
    examples: [
      'gatehouse import gatehouse.jsonl --data /var/lib/gatehouse --database postgres://gatehouse@db/gatehouse',
      'gatehouse import --openunison kubernetes:openunison --out config --with-secrets',
      'helm template orchestra tremolo/orchestra -n openunison -f values.yaml > charts.yaml',
      'helm template portal tremolo/orchestra-login-portal -n openunison -f values.yaml >> charts.yaml',
      'gatehouse import --openunison charts.yaml --out config',
    ],
    run: async (values, [file], output) => {
      if (file === undefined) return importOpenUnison(values, output)
      if (values.openunison !== undefined || values.out !== undefined) {
        throw new WrongUsage('FILE is an export of Gatehouse; --openunison and --out make a configuration folder')
      }
      const { importExport } = await import('./import-export.ts')
      await importExport(file, values, output)
      return 0
    },
  })(args, io)

async function importOpenUnison(values: Values<typeof options>, io: CommandOutput): Promise<number> {
  const from = required(values.openunison, 'openunison')
  const folder = required(values.out, 'out')
  const withSecrets = values['with-secrets']
  checkNewFolder(folder)
  if (isExport(from)) throw new WrongUsage(`${from} is an export of Gatehouse: run "gatehouse import ${from}"`)
  const source = await reading(openSource(from, values.kubeconfig))
  try {
    if (source.objects.length === 0) {
      throw new Error(
        `there are no objects of OpenUnison in ${from}${source.problems.map((line) => `\n${line}`).join('')}`,
      )
    }
    const plan = await reading(planImport(source, { folder: resolve(folder), withSecrets }))
    await writeFolder(folder, plan)
    const hide = hiding(plan)
    const report = importReport(plan, source, { source: from, folder, withSecrets, command: commandName() }).map(
      (line) => terminalLine(hide(line), longestLine),
    )
    for (const line of report) io.stdout(line)
    io.result({
      folder: resolve(folder),
      written: plan.ready.map(({ file }) => file),
      setAside: plan.setAside.map(({ file, reasons }) => ({
        file,
        reasons: reasons.map(({ path, message }) => ({ path, message: hide(message) })),
      })),
      report,
    })
    return await verify(folder, hide, io)
  } finally {
    source.close()
  }
}

/** With the reason why the cluster did not answer. */
async function reading<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { message, cause } = error
    const reason = cause instanceof Error ? ` (${cause.message})` : ''
    throw new Error(`${message}${reason}. Nothing was written.`, { cause: error })
  }
}

function isExport(from: string): boolean {
  if (!(statSync(from, { throwIfNoEntry: false })?.isFile() ?? false)) return false
  const file = openSync(from, 'r')
  try {
    const start = Buffer.alloc(exportStart.length)
    readSync(file, start)
    return start.toString() === exportStart
  } finally {
    closeSync(file)
  }
}

const longestLine = 2_000

async function openSource(from: string, kubeconfig: string | undefined): Promise<OpenUnisonSource> {
  const cluster = kubernetesPlace(from, kubeconfig, process.env)
  return cluster === undefined ? openRenderedSource(from) : openNamespace(cluster.connection, cluster.namespace)
}

const writeFolder = (folder: string, plan: ImportPlan): Promise<void> =>
  writeNewFolder(folder, async (made) => {
    for (const [path, { text, mode }] of filesOf(plan)) {
      const file = join(made, path)
      await mkdir(dirname(file), { recursive: true, mode: mode === secretMode ? 0o700 : 0o755 })
      await writeFile(file, text, { flag: 'wx', mode })
    }
  })

const secretMode = 0o600

function filesOf(plan: ImportPlan): Map<string, { readonly text: string; readonly mode: number }> {
  const files = new Map<string, { text: string; mode: number }>()
  const hide = hiding(plan)
  for (const { file, text } of plan.ready) files.set(file, { text, mode: 0o644 })
  for (const { file, text, reasons } of plan.setAside) {
    const why = reasons.map(
      ({ path, message }) => `# ${hide(oneLine(path === '' ? message : `${path}: ${message}`))}\n`,
    )
    files.set(`set-aside/${file}`, { text: `# Set aside:\n${why.join('')}${text}`, mode: 0o644 })
  }
  for (const [file, text] of plan.files) files.set(file, { text, mode: 0o644 })
  for (const [place, { text }] of plan.secrets) {
    if (text !== undefined) files.set(`secrets/${place}`, { text, mode: secretMode })
  }
  return files
}

const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')

/** Messages may quote a value that comes from a secret. The longest first, since a secret may be part of another. */
function hiding({ secretTexts }: ImportPlan): (text: string) => string {
  const longestFirst = secretTexts.toSorted((a, b) => b.length - a.length)
  return (text) => longestFirst.reduce((line, secret) => line.replaceAll(secret, '(secret)'), text)
}

/** The folder as it was written must have no errors. */
async function verify(folder: string, hide: (text: string) => string, io: CommandIo): Promise<number> {
  const { issues } = await loadConfiguration({ folder, catalog, environment: {}, strictSecrets: false })
  const errors = issues.filter(({ level }) => level === 'error')
  for (const issue of errors) io.stderr(hide(formatIssue(issue)))
  return errors.length === 0 ? 0 : 1
}
