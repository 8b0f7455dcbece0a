import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { catalog } from '#catalog/catalog.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import { servedApis } from '#requests/pipeline/served-apis.ts'
import { allMetrics } from '#testing/gateway/all-metrics.ts'

/**
 * Writes everything that users and other programs can observe of Gatehouse to a folder. A change that moves code leaves it
 * as it is: write it before and after, and compare both folders with `diff -r`.
 */
const usage = `Usage: npm run observable -- FOLDER [--no-titles]

Writes to FOLDER: the generated pages, definitions, schemas and examples of the tree, the help of every command, golden files,
migrations, the documents of every API, the metrics, and the titles of all tests (which takes some minutes and every
program that tests need).`

/** Written by commands of CONTRIBUTING.md or compared by tests, so that these files are what the code does. */
const written = [
  'docs/reference/**/*.md',
  'docs/openunison.md',
  'docs/specification.md',
  'deploy/{crds,schema,helm,kustomize,grafana,prometheus,argocd}/**/*.*',
  'test/api-promises.txt',
  'test/{config-errors,production-checks}/**/*.*',
  'examples/**/*.*',
]

const { values, positionals } = readArguments()
const [target] = positionals
if (target === undefined || positionals.length > 1) throw new Error(usage)
mkdirSync(target, { recursive: true })

for (const file of written.flatMap((pattern) => globSync(pattern, { exclude: ['**/node_modules/**', '**/*.ts'] }))) {
  write(file, readFileSync(file))
}
for (const file of globSync('src/**/migrations/*/*.sql')) {
  write(join('migrations', basename(dirname(file)), basename(file)), readFileSync(file))
}
write(
  'metrics.txt',
  lines(Array.from(allMetrics(), ([name, { type, labels }]) => `${name} ${type} ${labels.join(' ')}`)),
)
for (const folder of globSync('examples/*').sort()) await writeDocuments(folder)
if (values['no-titles'] !== true) writeTitles()

function readArguments() {
  return parseArgs({ options: { 'no-titles': { type: 'boolean' } }, allowPositionals: true })
}

function write(path: string, content: string | Buffer): void {
  const file = join(target ?? '', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

function lines(all: readonly string[]): string {
  return `${all.toSorted().join('\n')}\n`
}

/** The documents of the APIs that an example serves. */
async function writeDocuments(folder: string): Promise<void> {
  const { configuration } = await loadConfiguration({ folder, catalog, environment: {}, strictSecrets: false })
  for (const { name, mount, api } of configuration === undefined ? [] : servedApis(configuration)) {
    const place = { origin: 'https://gatehouse.example.com', ...api.place(mount) }
    for (const [kind, documents] of [['all', api.documents] as const, ['users', api.userDocuments] as const]) {
      if (documents === undefined) continue
      const formats = { openapi: documents.openApi(place), swagger: documents.swagger(place) }
      for (const format of api.formats) {
        write(
          `apis/${basename(folder)}/${name}-${kind}-${format}.json`,
          JSON.stringify(sorted(formats[format]), null, 2),
        )
      }
    }
  }
}

/** The order of keys is no promise. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key] ?? null)]),
  )
}

/** A test that only moves to another folder keeps its line. */
function writeTitles(): void {
  const file = resolve(target ?? '', 'titles.json')
  const vitest = ['node_modules/vitest/vitest.mjs', 'list', `--json=${file}`]
  execFileSync(process.execPath, vitest, { stdio: ['ignore', 'ignore', 'inherit'] })
  const tests: { name: string; file: string; projectName: string }[] = JSON.parse(readFileSync(file, 'utf8'))
  rmSync(file)
  write('titles.txt', lines(tests.map(({ name, projectName }) => `${projectName} > ${name}`)))
  console.log(`${tests.length} tests in ${new Set(tests.map((one) => relative('.', one.file))).size} files`)
}
