import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'

const kinds = ['target', 'task', 'mapper', 'filter', 'mechanism'] as const
type Kind = (typeof kinds)[number]

const usage = `Usage: gatehouse plugin new KIND NAME [--dir DIR]
       gatehouse plugin test FOLDER

new    Create the folder DIR/NAME with a working plug-in, its YAML and its tests
test   Run the tests of such a folder

  KIND       ${kinds.join(', ')}
  NAME       lower-case letters, digits and "-"
  --dir DIR  where the folder is made (default: here)`

const options = { dir: { type: 'string', default: '.' } } as const

const root = new URL('../../../', import.meta.url)
const typesOfExamples = '../../src/sdk/plugin-types.ts'
const typesBeside = 'types.ts'

/** `gatehouse plugin new KIND NAME` and `gatehouse plugin test FOLDER`. */
export const pluginCommand: RunCommand = async (args, io) => {
  const read = readArguments(args, { usage, options, positionals: args[0] === 'test' ? 2 : 3 }, io)
  if ('exit' in read) return read.exit
  const [action, what = '', name = ''] = read.positionals
  if (action === 'test') {
    if (hasTests(what)) return runTests(what, io)
    io.stderr(`gatehouse: ${what} is no folder with a test, such as the target.test.ts that "plugin new" makes`)
    return 1
  }
  if (action !== 'new') return wrong(`unknown action "${action}"`, io)
  const kind = kinds.find((known) => known === what)
  if (kind === undefined) return wrong(`a new plug-in is one of ${kinds.join(', ')}, not a "${what}"`, io)
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) return wrong(`"${name}" is no name for a ${kind}`, io)
  const folder = resolve(read.values.dir, name)
  try {
    const files = await makePlugin(kind, folder, name)
    io.stdout(`made ${folder} with ${files.join(', ')}`)
    io.stdout(`next: gatehouse plugin test ${folder}`)
    return 0
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    const reason = error instanceof Error ? error.message : String(error)
    io.stderr(`gatehouse: ${isThere ? `${folder} is there already, and stays as it is` : reason}`)
    return 1
  }
}

/**
 * A new plug-in starts from the example of its kind, which is tested like everything else. Throws when the folder is
 * there already, so that nothing is ever overwritten.
 */
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
  texts.set(typesBeside, await readFile(new URL('src/sdk/plugin-types.ts', root), 'utf8'))
  await mkdir(resolve(folder, '..'), { recursive: true })
  await mkdir(folder)
  for (const [file, text] of texts) await writeFile(join(folder, file), text, { flag: 'wx' })
  return [...texts.keys()]
}

/** Without this, a run that found nothing to test would look like one that passed. */
function hasTests(folder: string): boolean {
  try {
    return readdirSync(folder).some((file) => /\.test\.[mc]?[jt]s$/.test(file))
  } catch {
    return false
  }
}

/** The author's files need no package.json to be modules. */
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

function wrong(message: string, io: CommandIo): number {
  io.stderr(`gatehouse: ${message}`)
  io.stderr(usage)
  return 2
}
