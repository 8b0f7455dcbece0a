import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative, resolve, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type CommandIo, type CommandOutput, defineCommand, WrongUsage } from '#cli/command-line/command-line.ts'
import { outputOption } from '#cli/command-line/options.ts'

const kinds = ['target', 'task', 'mapper', 'filter', 'mechanism'] as const
type Kind = (typeof kinds)[number]

const examples = new URL('../../../examples/', import.meta.url)
const types = new URL('../../sdk/plugin/plugin-types.ts', import.meta.url)
/** What the tests of a plug-in run it with. */
const trial = new URL('../trial/plugin-trial.ts', import.meta.url)
const typesOfExamples = '../../src/sdk/plugin/plugin-types.ts'
const typesBeside = 'types.ts'
const trialOfExamples = '../../src/cli/trial/plugin-trial.ts'

const options = {
  dir: { value: 'DIR', default: '.', about: 'new: folder in which to create the plug-in' },
  ...outputOption,
} as const

export const pluginCommand = defineCommand({
  name: 'plugin',
  about: 'Create and test plug-ins.',
  options,
  actions: {
    new: {
      usage: 'KIND NAME [--dir DIR]',
      arguments: ['KIND', 'NAME'],
      about: 'Create the folder DIR/NAME with a working plug-in, its configuration and its tests',
      run: ({ dir }, [kind = '', name = ''], io) => create(kind, name, dir, io),
    },
    test: {
      usage: 'FOLDER',
      arguments: ['FOLDER'],
      about: 'Run the tests of a plug-in',
      run: (_, [folder = ''], io) => {
        if (!hasTests(folder)) throw new Error(`${folder} is not a folder with tests, such as target.test.ts`)
        return runTests(folder, io)
      },
    },
  },
  notes: `Arguments:
  KIND  ${kinds.join(', ')}
  NAME  Lower-case letters, digits and "-"`,
  examples: ['gatehouse plugin new target crm', 'gatehouse plugin test crm'],
})

async function create(given: string, name: string, dir: string, io: CommandOutput): Promise<void> {
  const kind = kinds.find((known) => known === given)
  if (kind === undefined) throw new WrongUsage(`KIND must be one of ${kinds.join(', ')}, not "${given}"`)
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
    throw new WrongUsage(`NAME must have lower-case letters, digits and "-", not "${name}"`)
  }
  const folder = resolve(dir, name)
  const files = await makePlugin(kind, folder, name).catch((cause: unknown) => {
    const exists = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
    throw exists ? new Error(`${folder} already exists; choose another name`, { cause }) : cause
  })
  io.stdout(`Created ${folder} with ${files.join(', ')}`)
  io.result({ folder, files })
  io.stdout(`Next: gatehouse plugin test ${folder}`)
}

/** Copies the example of the kind. Throws if the folder exists, so nothing is overwritten. */
async function makePlugin(kind: Kind, folder: string, name: string): Promise<string[]> {
  const exampleName = `plugin-${kind}`
  const example = new URL(`${exampleName}/`, examples)
  const trialFile = relative(folder, fileURLToPath(trial)).split(sep).join('/')
  const quotedTrial = `'${trialFile.replaceAll(/[\\']/g, '\\$&')}'`
  const texts = new Map<string, string>()
  for (const file of [`${kind}.ts`, `${kind}.test.ts`, `${kind}.yaml`, 'README.md']) {
    const text = await readFile(new URL(file, example), 'utf8')
    const own = text.replaceAll(exampleName, name).replaceAll(typesOfExamples, `./${typesBeside}`)
    texts.set(
      file,
      own.replace(`'${trialOfExamples}'`, () => quotedTrial),
    )
  }
  texts.set(typesBeside, await readFile(types, 'utf8'))
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
    env: { ...process.env, GATEHOUSE_TRIAL: trial.href },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  createInterface({ input: child.stdout }).on('line', io.stdout)
  return new Promise((done) => {
    child.on('error', () => done(1))
    child.on('close', (code) => done(code ?? 1))
  })
}
