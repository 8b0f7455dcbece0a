import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'

const usage = `Usage: gatehouse plugin new target NAME [--dir DIR]
       gatehouse plugin test FOLDER

new    makes the folder DIR/NAME with a target that works, its YAML and its test
test   runs the tests of such a folder

  NAME       lower-case letters, digits and "-"
  --dir DIR  where the folder is made (default: here)`

const options = { dir: { type: 'string', default: '.' } } as const

const root = new URL('../../../', import.meta.url)
/** The example is what a new target starts from, so that it is tested like everything else. */
const example = new URL('examples/plugin-target/', root)
const exampleName = 'plugin-target'
const files = ['target.js', 'target.test.js', 'target.yaml', 'README.md']

/** `gatehouse plugin new target NAME` and `gatehouse plugin test FOLDER`. */
export const pluginCommand: RunCommand = async (args, io) => {
  const read = readArguments(args, { usage, options, positionals: args[0] === 'test' ? 2 : 3 }, io)
  if ('exit' in read) return read.exit
  const [action, what = '', name = ''] = read.positionals
  if (action === 'test') {
    if (hasTests(what)) return runTests(what, io)
    io.stderr(`gatehouse: ${what} is no folder with a test, such as the target.test.js that "plugin new" makes`)
    return 1
  }
  if (action !== 'new') return wrong(`unknown action "${action}"`, io)
  if (what !== 'target') return wrong(`a new plug-in is a "target", not a "${what}"`, io)
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) return wrong(`"${name}" is no name for a target`, io)
  try {
    const folder = resolve(read.values.dir, name)
    await makeTarget(folder, name)
    io.stdout(`made ${folder}`)
    io.stdout(`next: gatehouse plugin test ${folder}`)
    return 0
  } catch (error) {
    io.stderr(`gatehouse: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

/** Throws when the folder is there already, so that nothing is ever overwritten. */
async function makeTarget(folder: string, name: string): Promise<void> {
  await mkdir(resolve(folder, '..'), { recursive: true })
  await mkdir(folder)
  const home = `${relative(folder, fileURLToPath(root)).split(sep).join('/')}/`
  for (const file of files) {
    const text = await readFile(new URL(file, example), 'utf8')
    await writeFile(join(folder, file), text.replaceAll(exampleName, name).replace("'../../'", `'${home}'`), {
      flag: 'wx',
    })
  }
}

/** Without this, a run that found nothing to test would look like one that passed. */
function hasTests(folder: string): boolean {
  try {
    return readdirSync(folder).some((file) => /\.test\.[mc]?[jt]s$/.test(file))
  } catch {
    return false
  }
}

function runTests(folder: string, io: CommandIo): Promise<number> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--test'], {
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
