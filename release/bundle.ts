import { chmodSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, type RolldownOptions, rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Files that the gateway is started with, or loads by their address. They share their parts. */
const entries = { main: 'src/cli/main.ts', 'plugin-trial': 'src/cli/trial/plugin-trial.ts' } as const

/** Folders that files of the gateway name relative to themselves, and where the bundle has them, relative to `lib`. */
const folders: Readonly<Record<string, string>> = {
  '../../../../portal/dist/': '../portal/',
  '../../../deploy/schema/': '../schema/',
  '../../../examples/': '../examples/',
  './migrations/': '../migrations/',
}

/** Files that are read as they are, although they are TypeScript. */
const texts: readonly string[] = ['src/sdk/plugin/plugin-types.ts']

/** What a release has as it is in the sources, and where. The image of deploy/Dockerfile has it too. */
export const copies: Readonly<Record<string, string>> = {
  'src/database/migrations': 'migrations',
  'deploy/schema': 'schema',
  // Pages link to these.
  'deploy/prometheus': 'deploy/prometheus',
  'deploy/grafana': 'deploy/grafana',
  'deploy/systemd': 'deploy/systemd',
  examples: 'examples',
  LICENSE: 'LICENSE',
  'CHANGELOG.md': 'CHANGELOG.md',
  'SECURITY.md': 'SECURITY.md',
}

/** Help texts and messages name these pages, so that every release has them. */
export const documentation = (): string[] =>
  globSync('docs/**/*.{md,png}', { cwd: root, exclude: ['docs/dist', 'docs/site'] })

/** What the gateway starts in a process, thread or realm, and what it reads, found while its files are bundled. */
interface Found {
  readonly programs: Set<string>
  readonly files: Set<string>
}

/** Writes the built portal to a folder. Returns the files that it was made of. */
type PlacePortal = (folder: string) => Promise<readonly string[]>

/**
 * Makes the folder of a release: `lib` with the server in JavaScript, `migrations`, `schema`, `portal`, `examples`, `docs`, `deploy` and `bin`.
 * It needs no other package, and runs on the Node.js that package.json names.
 * Returns the files that it was made of.
 */
export async function makeBundle(target: string, placePortal: PlacePortal): Promise<readonly string[]> {
  rmSync(target, { recursive: true, force: true })
  const lib = join(target, 'lib')
  mkdirSync(lib, { recursive: true })
  const found: Found = { programs: new Set(), files: new Set() }
  const sources = await write({ input: { ...entries } }, found, { dir: lib, chunkFileNames: '[name]-[hash].js' })
  // A program is passed on as one text or runs with few rights, so it is one file.
  for (const program of found.programs) {
    sources.push(...(await write({ input: program }, found, { file: join(lib, inLib(program)), codeSplitting: false })))
  }
  for (const file of found.files) cpSync(file, join(lib, basename(file)))
  // It has types only, so that it is its own declaration.
  cpSync(join(root, 'src/sdk/plugin/plugin-types.ts'), join(target, 'plugin.d.ts'))
  for (const [from, to] of Object.entries(copies)) cpSync(join(root, from), join(target, to), { recursive: true })
  cpSync(join(root, 'release/npm-readme.md'), join(target, 'README.md'))
  for (const page of documentation()) cpSync(join(root, page), join(target, page))
  for (const name of ['gatehouse', 'node']) {
    mkdirSync(join(target, 'bin'), { recursive: true })
    cpSync(join(root, 'bin', name), join(target, 'bin', name))
    chmodSync(join(target, 'bin', name), 0o755)
  }
  sources.push(...(await placePortal(join(target, 'portal'))))
  unlinkAbsent(target)
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
  return sources
}

/** `[label](path#anchor)`, but not with an address of the web, or an anchor of the same page. */
const relativeLink = /\[([^\]]*)\]\((?![a-z]+:|#)([^)\s#]+)(?:#[^)\s]*)?\)/g

/** Links of pages to what a release doesn't have, such as the sources, become their labels. */
function unlinkAbsent(target: string): void {
  for (const page of globSync('**/*.md', { cwd: target })) {
    const file = join(target, page)
    const text = readFileSync(file, 'utf8')
    const unlinked = text.replace(relativeLink, (link, label: string, path: string) =>
      existsSync(resolve(dirname(file), path)) ? link : label,
    )
    if (unlinked !== text) writeFileSync(file, unlinked)
  }
}

/** What npm and Node.js need to know of the folder. It can be published, unlike the package of the sources. The same Node.js as in development, and no other dependency. */
function manifest(): object {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { name, version, description, license, type, bin, optionalDependencies } = own
  const exports = { './plugin': { types: './plugin.d.ts' } }
  const keywords = ['scim', 'oidc', 'identity', 'provisioning', 'gateway']
  // A package with a scope is private otherwise.
  const publishConfig = { access: 'public' }
  return { name, version, description, keywords, license, type, bin, exports, publishConfig, optionalDependencies }
}

const inLib = (file: string): string => (isText(file) ? basename(file) : `${basename(file, '.ts')}.js`)
const isText = (file: string): boolean => !file.endsWith('.ts') || texts.includes(relative(root, file))

async function write(input: RolldownOptions, found: Found, output: object): Promise<string[]> {
  const bundle = await rolldown({
    ...input,
    cwd: root,
    platform: 'node',
    plugins: [ownFiles(found)],
    // Direct eval is used by a library that formats its deprecations with it.
    onLog: (level, log, handle) => log.code !== 'EVAL' && handle(level, log),
  })
  const { output: made } = await bundle.write({
    format: 'esm',
    sourcemap: true,
    sourcemapExcludeSources: true,
    // Libraries look up by the names of their classes, and stack traces show names.
    keepNames: true,
    // One character outside of Latin-1 doubles the memory that the text of a file takes while the gateway runs.
    charset: 'ascii',
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    ...output,
  })
  await bundle.close()
  return made.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
}

const ownAddress = /new URL\((['"`])(\.[^'"`]*)\1, import\.meta\.url\)/g

/** `new URL('./x', import.meta.url)` leads to the place that `x` has in the bundle. */
function ownFiles(found: Found): Plugin {
  return {
    name: 'own-files',
    transform: {
      filter: { id: /\/src\/.*\.ts$/, code: /import\.meta\.url/ },
      handler(code, id) {
        const moved = code.replace(ownAddress, (whole, _quote, path: string) => {
          if (path.includes('${')) return whole
          const file = resolve(dirname(id), path)
          const place = folders[path] ?? `./${inLib(file)}`
          if (folders[path] === undefined && isText(file)) found.files.add(file)
          else if (folders[path] === undefined && !Object.values<string>(entries).includes(relative(root, file))) {
            found.programs.add(file)
          }
          return `new URL('${place}', import.meta.url)`
        })
        // All lines stay where they are.
        return { code: moved, map: null }
      },
    },
  }
}
