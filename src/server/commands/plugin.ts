import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { suggestion } from '#kernel/suggest.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import { messageOf, readArguments, wrongUsage } from '#server/commands/command-line.ts'

const kinds = ['target', 'task', 'mapper', 'filter', 'mechanism'] as const
type Kind = (typeof kinds)[number]

const usage = `Create and test plug-ins.

Usage:
  gatehouse plugin new KIND NAME [--dir DIR]
  gatehouse plugin test FOLDER

Actions:
  new   Create the folder DIR/NAME with a working plug-in, its configuration and its tests
  test  Run the tests of a plug-in

Arguments:
  KIND  ${kinds.join(', ')}
  NAME  Lower-case letters, digits and "-"

Options:
  --dir DIR  Folder in which to create the plug-in (default .)`

const options = { dir: { type: 'string', default: '.' } } as const

const root = new URL('../../../', import.meta.url)
const typesOfExamples = '../../src/sdk/plugin/plugin-types.ts'
const typesBeside = 'types.ts'

export const pluginCommand: RunCommand = async (args, io) => {
  const read = readArguments(args, { command: 'plugin', usage, options, ...expectedArguments(args) }, io)
  if ('exit' in read) return read.exit
  const [action, what = '', name = ''] = read.positionals
  if (action === 'test') {
    if (hasTests(what)) return runTests(what, io)
    io.stderr(`gatehouse plugin: ${what} is not a folder with tests, such as target.test.ts`)
    return 1
  }
  const wrong = (message: string): number => wrongUsage('plugin', message, io)
  if (action !== 'new') return wrong(`unknown action "${action}"${suggestion(action ?? '', ['new', 'test'])}`)
  const kind = kinds.find((known) => known === what)
  if (kind === undefined) return wrong(`KIND must be one of ${kinds.join(', ')}, not "${what}"`)
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(name))
    return wrong(`NAME must have lower-case letters, digits and "-", not "${name}"`)
  const folder = resolve(read.values.dir, name)
  try {
    const files = await makePlugin(kind, folder, name)
    io.stdout(`Created ${folder} with ${files.join(', ')}`)
    io.stdout(`Next: gatehouse plugin test ${folder}`)
    return 0
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    io.stderr(`gatehouse plugin: ${isThere ? `${folder} already exists; choose another name` : messageOf(error)}`)
    return 1
  }
}

const expectedArguments = ([action]: readonly string[]) =>
  action === 'test'
    ? ({ positionals: 2, names: ['test', 'FOLDER'] } as const)
    : ({ positionals: 3, names: ['new', 'KIND', 'NAME'] } as const)

/** Copies the example of the kind. Throws if the folder exists, so nothing is overwritten. */
async function makePlugin(kind: Kind, folder: string, name: string): Promise<string[]> {
  const exampleName = `plugin-${kind}`
  const example = new URL(`examples/${exampleName}/`, root)
  const home = `${relative(folder, fileURLToPath(root)).split(sep).join('/')}/`
  const quotedHome = `'${home.replaceAll(/[\\']/g, '\\$&')}'`
  const texts = new Map<string, string>()
  for (const file of [`${kind}.ts`, `${kind}.test.ts`, `${kind}.yaml`, 'README.md']) {
    const text = await readFile(new URL(file, example), 'utf8')
    const own = text.replaceAll(exampleName, name).replaceAll(typesOfExamples, `./${typesBeside}`)
    texts.set(
      file,
      own.replace("'../../'", () => quotedHome),
    )
  }
  texts.set(typesBeside, await readFile(new URL('src/sdk/plugin/plugin-types.ts', root), 'utf8'))
  await mkdir(resolve(folder, '..'), { recursive: true })
  await mkdir(folder)
  for (const [file, text] of texts) await writeFile(join(folder, file), text, { flag: 'wx' })
  return [...texts.keys()]
}

/** A run without tests would look like success. */
function hasTests(folder: string): boolean {
  try {
    return readdirSync(folder).some((file) => /\.test\.[mc]?[jt]s$/.test(file))
  } catch {
    return false
  }
}

/** The files of the author are modules without a package.json. */
const quiet = ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON']

function runTests(folder: string, io: CommandIo): Promise<number> {
  const child = spawn(process.execPath, [...quiet, '--test'], {
    cwd: resolve(folder),
    env: { ...process.env, GATEHOUSE: pathToFileURL(fileURLToPath(root)).href },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  createInterface({ input: child.stdout }).on('line', io.stdout)
  return new Promise((done) => {
    child.on('error', () => done(1))
    child.on('close', (code) => done(code ?? 1))
  })
}
