import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { catalog } from '#catalog/catalog.ts'
import { descriptionOf, type ParameterDescription } from '#sdk/module/parameter-types.ts'
import type { ParameterTable } from '#sdk/module/parameters.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'
import { coverageSentence, openUnisonPage } from './openunison-page.ts'

interface ReferenceModule {
  readonly name: string
  readonly aliases: readonly string[]
  readonly parameters: ParameterTable
}

interface DefinedModule {
  readonly className: string
  readonly aliases: readonly string[]
  readonly parameters?: ParameterTable
}

const modulesOf = (registry: { all(): readonly DefinedModule[] }): ReferenceModule[] =>
  registry.all().map(({ className, aliases, parameters = {} }) => ({ name: className, aliases, parameters }))

/** The modules of each slot, by the folder of their pages in docs/reference. */
export const slots: Readonly<Record<string, readonly ReferenceModule[]>> = {
  'audit-sinks': modulesOf(catalog.auditSinks),
  'auth-mechanisms': modulesOf(catalog.authMechanisms),
  authorizations: modulesOf(catalog.authorizations),
  'custom-tasks': modulesOf(catalog.customTasks),
  'directory-inserts': modulesOf(catalog.directoryInserts),
  'dynamic-workflows': modulesOf(catalog.dynamicWorkflows),
  filters: modulesOf(catalog.filters),
  jobs: modulesOf(catalog.jobs),
  mappers: modulesOf(catalog.mappers),
  notifiers: modulesOf(catalog.notifiers),
  targets: modulesOf(catalog.targets),
  'value-sources': modulesOf(catalog.valueSources),
  'workflow-tasks': Array.from(catalog.tasks, ([name, { fields }]) => ({ name, aliases: [], parameters: fields })),
}

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The text of every generated page, by its path. The prose around the markers of a module's page is written by hand. */
export function referencePages(): ReadonlyMap<string, string> {
  const pages = new Map([
    ['docs/reference/sdk.md', sdkPage()],
    ['docs/openunison.md', openUnisonPage(table)],
    [migrationPage, fillIn(migrationPage, read(migrationPage), coverageSentence('openunison.md'), 'coverage')],
  ])
  for (const [folder, modules] of Object.entries(slots)) {
    const title = folder === 'workflow-tasks' ? 'Field' : 'Parameter'
    for (const { name, parameters } of modules) {
      if (Object.keys(parameters).length === 0) continue
      const path = `docs/reference/${folder}/${name}.md`
      pages.set(path, fillIn(path, read(path), parameterTable(title, parameters)))
    }
  }
  return pages
}

const migrationPage = 'docs/migration-from-openunison.md'

function fillIn(path: string, page: string, text: string, name = 'parameters'): string {
  const markers = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(\\n<!-- /${name} -->)`)
  if (!markers.test(page)) throw new Error(`${path} has no <!-- ${name} --> and <!-- /${name} -->. Add both lines.`)
  return page.replace(markers, (_, start: string, end: string) => `${start}\n${text}\n${end}`)
}

function parameterTable(title: string, parameters: ParameterTable): string {
  const rows = Object.entries(parameters).map(([name, parameter]) => {
    const description = descriptionOf(parameter)
    return [code(name), typeOf(description), requirementOf(description), description.about]
  })
  return table([title, 'Type', 'Required', 'Meaning'], rows)
}

function typeOf({ type, many, reference, secret }: ParameterDescription): string {
  const [, words] = /^one of (.*)$/.exec(type) ?? []
  let shown = words === undefined ? (typeNames[type] ?? type) : oneOf(words.split(', '))
  if (reference !== undefined) {
    const kind = referenceKinds[reference]
    const referred = kind === undefined ? reference : `[${kind}](../kinds/${kind}.md)`
    shown = many ? `list of ${referred} names` : `${referred} name`
  } else if (many && type !== 'list') shown = `list of ${type}`
  return secret === true ? `${shown}, secret` : shown
}

const typeNames: Readonly<Record<string, string>> = { any: 'YAML' }

const referenceKinds: Partial<Record<ReferenceKind, string>> = {
  application: 'Application',
  chain: 'AuthenticationChain',
  'custom authorization': 'CustomAuthorization',
  'resource type': 'ResourceType',
  'javascript mapping': 'JavaScriptMapping',
  mechanism: 'AuthenticationMechanism',
  notifier: 'Notifier',
  org: 'Org',
  'result group': 'ResultGroup',
  target: 'Target',
  trust: 'Trust',
  workflow: 'Workflow',
}

/** Without the empty word, which counts as absent, and without other spellings of a word. */
function oneOf(words: readonly string[]): string {
  const byKey = new Map(words.toReversed().map((word) => [word.toLowerCase(), word]))
  return Array.from(byKey.values()).reverse().filter(Boolean).map(code).join(', ')
}

const longestFallback = 60

function requirementOf({ required, requirement, fallback }: ParameterDescription): string {
  if (requirement !== undefined) return requirement
  if (required === true) return 'yes'
  const values = (Array.isArray(fallback) ? fallback : [fallback]).filter((value) => value !== '')
  const isShown = (value: unknown): boolean =>
    ['string', 'number', 'boolean'].includes(typeof value) && String(value).length <= longestFallback
  return values.every(isShown) ? ['no', ...values.map((value) => code(String(value)))].join(', ') : 'no'
}

/** Everything that src/sdk exports, a section for each folder. */
function sdkPage(): string {
  const sections = new Map<string, string[][]>()
  for (const path of globSync('src/sdk/**/*.ts', { cwd: root }).sort()) {
    if (path.endsWith('.test.ts')) continue
    const folder = basename(dirname(path))
    const rows = exportsOf(read(path)).map(({ name, kind, about }) => [`[${code(name)}](../../${path})`, kind, about])
    sections.set(folder, [...(sections.get(folder) ?? []), ...rows])
  }
  const texts = Array.from(
    sections,
    ([folder, rows]) => `## ${folder}\n\n${table(['Export', 'Kind', 'About'], rows)}\n`,
  )
  return `${sdkIntroduction}\n${texts.join('\n')}`
}

const sdkIntroduction = `# SDK for modules

What modules import from \`#sdk/…\`, by folder of \`src/sdk\`. [CONTRIBUTING.md](../../CONTRIBUTING.md#how-to-add-a-module) says how to
add a module. \`npm run reference\` writes this page from the exports and the first sentence of their comments.
`

interface Export {
  readonly name: string
  readonly kind: string
  /** The first sentence of its comment. */
  readonly about: string
}

const declaration =
  /(?:^\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^export (?:async |abstract )*(class|const|function|interface|type) (\w+)/gm

/** Of several declarations of one name, the first that has a comment. */
function exportsOf(source: string): Export[] {
  const byName = new Map<string, Export>()
  for (const [, comment = '', kind = '', name = ''] of source.matchAll(declaration)) {
    const about = firstSentence(
      comment
        .replaceAll(/^ *\* ?/gm, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    if ((byName.get(name)?.about ?? '') === '') byName.set(name, { name, kind, about })
  }
  return Array.from(byName.values())
}

const firstSentence = (text: string): string => /^.*?\.(?= [A-Z`]|$)/.exec(text)?.[0] ?? text

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(header), `|${header.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

const code = (text: string): string => `\`${text}\``

if (import.meta.main) {
  for (const [path, text] of referencePages()) writeFileSync(join(root, path), text)
}
