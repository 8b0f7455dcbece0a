import { readdir, readFile, realpath } from 'node:fs/promises'
import { dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Issues, Path } from '#kernel/issues.ts'
import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import { nearestName } from '#kernel/suggest.ts'
import { type LegacyRealm, legacyRealm } from '#openunison/scripts/legacy-realm.ts'
import { type CheckedScript, checkModule, checkScript } from '#openunison/scripts/legacy-script.ts'
import type { LegacySignatures } from '#openunison/scripts/legacy-signatures.ts'
import { declaredNames, type JavaScriptCode } from '#protocols/plugin/javascript-source.ts'
import { PluginHost, type PluginHostOptions } from '#protocols/plugin/plugin-host.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { list, type Parameter, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { type ScriptReach, scriptServices } from './script-services.ts'

/** The rows of every module with a plug-in; the plug-in's `init` gets all unknown names. */
export const pluginParameters = {
  javaScript: text({ about: "The plug-in's code.", requirement: 'this or `module`' }),
  module: text({
    about:
      'A file `.js`, `.mjs`, `.ts` or `.mts` with the code: relative to the configuration folder and inside it, or absolute.',
    requirement: 'this or `javaScript`',
  }),
  includeJs: list({
    about: 'JavaScript or JavaScriptMapping objects whose code comes before the own one.',
    reference: 'javascript mapping',
  }),
  timeoutSeconds: wholeNumber({ about: 'How long one call may take.', fallback: 10, min: 1, max: 600 }),
  memoryMegabytes: wholeNumber({ about: "The limit of the plug-in's heap.", fallback: 64, min: 16, max: 4096 }),
  '<name>': list({ about: 'Any other parameter is passed to `init`.' }),
}

/** The source of the code, and its limits: everything that is known before any file is read. */
export interface PluginCode {
  readonly inline: string | undefined
  /** Absolute. */
  readonly file: string | undefined
  readonly includes: readonly string[]
  readonly folder: string
  /** The data folder may be inside of the configuration folder. */
  readonly isOwnFile?: (path: string) => boolean
  readonly timeoutMillis: number
  readonly memoryMegabytes: number
  readonly config: Readonly<Record<string, readonly string[]>>
  /** Names that the code declares; undefined if that isn't known before it runs. */
  readonly declared?: ReadonlySet<string> | undefined
  /** The signatures of legacy scripts; without them, such scripts are rejected. */
  readonly signatures?: LegacySignatures | undefined
  /** It is a legacy script, whether or not it names Java. */
  readonly isLegacy?: boolean
  /** Workflows that a legacy script starts; undefined for one whose name is not known beforehand. */
  readonly starts?: readonly (string | undefined)[]
  /** The plain texts of a legacy script that starts such a workflow. */
  readonly texts?: readonly string[]
}

/** Code that is ready to run. */
interface LoadedCode {
  readonly code: JavaScriptCode
  /** The base of imports. */
  readonly url: string
  /** Files and folders that the code may read. */
  readonly folders: readonly string[]
  /** The realm of a legacy script. */
  readonly realm?: LegacyRealm
}

const extensions = ['.js', '.mjs', '.ts', '.mts']

/** Where code is, and what it must not read there. */
export const codeFolder = (
  context: Pick<ParseContext, 'folder' | 'ownFile'>,
): Pick<PluginCode, 'folder' | 'isOwnFile'> => ({
  folder: context.folder,
  isOwnFile: (path) => context.ownFile?.(path) !== undefined,
})

/** The code of a module whose only parameters are `pluginParameters`. */
export const parsePluginCode =
  (signatures?: LegacySignatures) =>
  (params: Params, issues: Issues, context: ParseContext): PluginCode =>
    readPluginCode(
      readParameters(pluginParameters, params, issues, context),
      Object.keys(pluginParameters),
      params,
      issues,
      context,
      signatures,
    )

/** Pure, except for files that the context itself can read. The code is checked and not run. */
export function readPluginCode(
  values: ParsedParameters<typeof pluginParameters>,
  knownNames: readonly string[],
  params: Params,
  issues: Issues,
  context: ParseContext,
  signatures?: LegacySignatures,
): PluginCode {
  const { javaScript: inline, module, includeJs } = values
  if ((inline === undefined) === (module === undefined)) {
    const place = params.pathOf(module === undefined ? 'javaScript' : 'module')
    issues.error(place, 'either "javaScript" or "module" is required, and not both')
  }
  let declared: ReadonlySet<string> | undefined
  let starts: PluginCode['starts'] = []
  let texts: PluginCode['texts'] = []
  if (inline !== undefined) {
    const checked = readScript(inline, 'javaScript', params, issues, context, { signatures })
    starts = checked?.workflows ?? []
    texts = checked?.texts ?? []
    if (includeJs.length === 0 && checked !== undefined) declared = declaredNames(checked.code)
  }
  if (module !== undefined && includeJs.length > 0) {
    issues.error(params.pathOf('includeJs'), '"includeJs" goes with "javaScript" only; a module imports what it needs')
  }
  const onCode = (code: JavaScriptCode): void => {
    declared = declaredNames(code)
  }
  const place = params.pathOf('module')
  const file = module === undefined ? undefined : moduleFile(module, place, issues, context, onCode)
  return {
    declared,
    starts,
    texts,
    inline,
    file,
    includes: includeJs,
    ...codeFolder(context),
    timeoutMillis: values.timeoutSeconds * 1000,
    memoryMegabytes: values.memoryMegabytes,
    config: openParameters(values['<name>'], knownNames, params, issues),
    signatures,
  }
}

interface ScriptUse {
  readonly signatures: LegacySignatures | undefined
  readonly isLegacy?: boolean
}

/** Checks the inline script in the parameter of that name; undefined, with an issue, if it is not JavaScript. */
function readScript(
  inline: string,
  name: string,
  params: Params,
  issues: Issues,
  context: ParseContext,
  { signatures, isLegacy = false }: ScriptUse,
): CheckedScript | undefined {
  const place = params.pathOf(name)
  let checked: CheckedScript | undefined
  reportTo(issues, place, name, () => {
    checked = checkScript(inline, signatures, isLegacy)
  })
  context.countScript?.(checked === undefined ? undefined : checked.findings.filter(isError).map(({ use }) => use))
  for (const { level, message } of checked?.findings ?? []) issues[level](place, `"${name}": ${message}`)
  for (const target of checked?.targets ?? []) context.refer('target', target, place)
  for (const workflow of checked?.workflows ?? [])
    if (workflow !== undefined) context.refer('workflow', workflow, place)
  return checked
}

const isError = ({ level }: { readonly level: string }): boolean => level === 'error'

/** The rows of modules whose code is always a legacy script, in the parameter of the given name. */
export const legacyParameters = <const N extends string>(name: N) => {
  const { module: _, javaScript: __, ...others } = pluginParameters
  return { ...others, [name]: text({ about: 'The script.', required: true }) } as typeof others & {
    readonly [K in N]: Parameter<string>
  }
}

type LegacyValues = Omit<ParsedParameters<typeof pluginParameters>, 'module' | 'javaScript'>

/** The code of a module with `legacyParameters`. */
export function readLegacyCode(
  values: LegacyValues,
  {
    name,
    inline,
    signatures,
  }: { readonly name: string; readonly inline: string; readonly signatures: LegacySignatures },
  knownNames: readonly string[],
  params: Params,
  issues: Issues,
  context: ParseContext,
): PluginCode {
  if (inline !== '') readScript(inline, name, params, issues, context, { signatures, isLegacy: true })
  return {
    inline,
    file: undefined,
    includes: values.includeJs,
    ...codeFolder(context),
    timeoutMillis: values.timeoutSeconds * 1000,
    memoryMegabytes: values.memoryMegabytes,
    config: openParameters(values['<name>'], knownNames, params, issues),
    signatures,
    isLegacy: true,
  }
}

interface PluginUse extends Pick<PluginHostOptions, 'name' | 'functions' | 'idleMillis'> {
  /** Functions that the code must have. */
  readonly required?: readonly string[]
  /** Global values of the code; `name` by default. */
  readonly globals?: PluginHostOptions['globals']
  /** The arguments of `init`; it isn't called if absent. */
  readonly init?: readonly JsonValue[] | undefined
  /** The name of `init`, if it has another one. */
  readonly initName?: string
  /** The arguments of `reInit`, which is called after `init` in a process that replaces another. */
  readonly reInit?: readonly JsonValue[]
}

/** Loads the code and runs `init`. Rejects with the reason if either fails, or a required function is missing. */
export async function openPlugin(
  code: PluginCode,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript'> & Partial<ScriptReach>,
  { required = [], globals = { name: host.name }, init, initName = 'init', reInit, ...use }: PluginUse,
): Promise<PluginHost> {
  const plugin = await PluginHost.open({
    ...(await loadPluginCode(code, host)),
    ...use,
    globals,
    timeoutMillis: code.timeoutMillis,
    memoryMegabytes: code.memoryMegabytes,
    log: host.log,
    serve: scriptServices(host),
    start: (restarted) => [
      ...(init === undefined ? [] : [{ function: initName, args: init }]),
      ...(restarted && reInit !== undefined ? [{ function: 'reInit', args: reInit }] : []),
    ],
  })
  const missing = required.filter((name) => !plugin.has(name))
  if (missing.length === 0) return plugin
  await plugin.close()
  throw new Error(`${use.name} has no function ${missing.join(', ')}`)
}

/** Reads the file or joins the included texts. Throws if there is none or it is not JavaScript. */
async function loadPluginCode(
  { inline, file, includes, folder, isOwnFile, signatures, isLegacy }: PluginCode,
  host: Pick<ModuleHost, 'name' | 'javaScript'>,
): Promise<LoadedCode> {
  const root = await realpath(folder).catch(() => resolve(folder))
  if (file !== undefined) {
    const real = await realpath(file)
    const source = await readFile(real, 'utf8')
    const code = named(file, () => checkModule(source, real))
    const own = dirname(real) === root ? [] : [dirname(real)]
    return { code, url: pathToFileURL(real).href, folders: [...(await readableIn(root, isOwnFile)), ...own] }
  }
  const texts = includes.map((name) => {
    const found = host.javaScript(name)
    if (found === undefined) throw new Error(`there is no JavaScript or JavaScriptMapping "${name}"`)
    named(`"${name}" of includeJs`, () => checkScript(found, signatures))
    return found
  })
  if (inline !== undefined) texts.push(inline)
  const { code, legacy, findings } = named('javaScript', () => checkScript(texts.join('\n;\n'), signatures, isLegacy))
  const wrong = findings.find(({ level }) => level === 'error')
  if (wrong !== undefined) throw new Error(`javaScript: ${wrong.message}`)
  const url = pathToFileURL(join(root, `${host.name.replaceAll(/[^\w.-]/g, '_')}.inline.js`)).href
  if (legacy && signatures !== undefined) return { code, url, folders: [], realm: legacyRealm(signatures) }
  return { code, url, folders: await readableIn(root, isOwnFile) }
}

/**
 * The parts of the configuration folder that a plug-in may need: never the configuration, secrets and keys, the data
 * folder, or what a hidden name keeps from view, such as `.env` and the default data folder.
 */
async function readableIn(root: string, isOwnFile: PluginCode['isOwnFile']): Promise<string[]> {
  const entries = await readdir(root).catch(() => [])
  const needed = entries.filter((name) => !/^\.|^(?:secrets|keys)$|\.ya?ml$/.test(name))
  return needed.map((name) => join(root, name)).filter((path) => isOwnFile?.(path) !== true)
}

/** The absolute path of the file that the value at `place` names; undefined, with an issue, if it is invalid. */
export function moduleFile(
  module: string,
  place: Path,
  issues: Issues,
  context: ParseContext,
  onCode?: (code: JavaScriptCode) => void,
): string | undefined {
  if (!extensions.includes(extname(module))) {
    issues.error(place, `"module": must end in ${extensions.join(', ')}`)
    return undefined
  }
  const file = isAbsolute(module) ? module : resolve(context.folder, module)
  if (!isAbsolute(module) && relative(context.folder, file).split(sep)[0] === '..') {
    issues.error(place, '"module": leads out of the configuration folder; such a file is named by its absolute path')
    return undefined
  }
  const { readFile: read } = context
  if (read !== undefined) {
    reportTo(issues, place, 'module', () => {
      const code = checkModule(read(file), file)
      onCode?.(code)
    })
  }
  return file
}

function openParameters(
  given: ReadonlyMap<string, readonly string[]>,
  knownNames: readonly string[],
  params: Params,
  issues: Issues,
): Record<string, readonly string[]> {
  const config: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of given) {
    const meant = nearestName(name, knownNames)
    if (isForbiddenKey(name)) issues.error(params.pathOf(name), `"${name}" cannot be the name of a parameter`)
    else config[name] = values
    if (meant !== undefined) {
      issues.warning(params.pathOf(name), `"${name}" is handed to the plug-in; did you mean "${meant}"?`)
    }
  }
  return config
}

function reportTo(issues: Issues, place: Path, name: string, check: () => unknown): void {
  try {
    check()
  } catch (error) {
    issues.error(place, `"${name}": ${error instanceof Error ? error.message : String(error)}`)
  }
}

function named<T>(name: string, check: () => T): T {
  try {
    return check()
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}
