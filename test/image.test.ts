import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { copies, documentation } from '../release/bundle.ts'

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string
  dependencies: Readonly<Record<string, string>>
  optionalDependencies: Readonly<Record<string, string>>
}
const stages = readDockerfile(readFileSync('deploy/Dockerfile', 'utf8'))
const image = stages.at(-1)
const isIgnored = dockerIgnore(readFileSync('.dockerignore', 'utf8'))

const texts = (name: string, from = image?.instructions ?? []): string[] =>
  from.filter((one: Instruction) => one.name === name).map(({ text }) => text)

/** The sources of the image's own COPY lines, without those from another stage. */
const copied = texts('COPY')
  .filter((text) => !text.startsWith('--from='))
  .flatMap((text) => text.split(' ').slice(0, -1))

const filesOf = (path: string): string[] =>
  statSync(path).isFile() ? [path] : globSync(`${path}/**/*`).filter((file) => statSync(file).isFile())

/** The parts of the working folder that are in the image. */
const shipped = copied.flatMap(filesOf).filter((file) => !isIgnored(file))

describe('the image', () => {
  test('uses the Node.js release of the tests, by name and version', () => {
    const [release] = new Set(Object.values(manifest.optionalDependencies))
    expect(stages).toHaveLength(3)
    for (const { base } of stages) expect(base).toMatch(new RegExp(`^node:${release}-[a-z]+-slim$`))
    expect(process.version).toBe(`v${release}`)
  })

  test('runs as a user by number who is not root', () => {
    expect(texts('USER')).toEqual(['10001:10001'])
    const names = image?.instructions.map(({ name }) => name) ?? []
    expect(names.lastIndexOf('RUN')).toBeLessThan(names.indexOf('USER'))
    const values = readFileSync('deploy/helm/gatehouse/values.yaml', 'utf8')
    expect(values).toContain('runAsUser: 10001')
  })

  test('has the locked dependencies without those of development, and runs none of their scripts', () => {
    const [first] = stages
    expect(texts('RUN', first?.instructions).join()).toMatch(
      /^npm ci --omit=dev --omit=optional --ignore-scripts --workspaces=false /,
    )
    expect(texts('COPY', first?.instructions)).toEqual(['package.json package-lock.json .npmrc ./'])
  })

  test('has the portal from its own build stage, made from its sources and the contracts', () => {
    const [, portal] = stages
    expect(texts('COPY', portal?.instructions)).toEqual([
      'package.json package-lock.json .npmrc tsconfig.json ./',
      'portal ./portal',
      'src ./src',
    ])
    expect(texts('RUN', portal?.instructions).join()).toContain('node portal/build.ts')
    expect(texts('COPY')).toContain('--from=portal /app/portal/dist ./portal/dist')
    expect(['portal/dist/index.html', 'portal/node_modules/a/index.js'].filter((file) => !isIgnored(file))).toEqual([])
  })

  test('has no health check, no remote files and no shell around the program', () => {
    const names = new Set(stages.flatMap(({ instructions }) => instructions.map(({ name }) => name)))
    for (const name of ['HEALTHCHECK', 'ADD', 'ONBUILD', 'ARG']) expect(names.has(name)).toBe(false)
    expect(texts('ENTRYPOINT')).toEqual(['["/app/bin/gatehouse"]'])
  })

  test('files that are written at run time are in /data and /tmp', () => {
    expect(texts('ENV')).toEqual(['NODE_COMPILE_CACHE=/tmp/gatehouse-compiled'])
    expect(texts('VOLUME')).toEqual(['["/data"]'])
    expect(texts('CMD').join()).toContain('"--data", "/data"')
  })

  test('contains only what runs', () => {
    const [files, folders] = [
      ['LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'package.json'],
      ['bin', 'src'],
    ]
    const deploy = ['schema', 'prometheus', 'grafana', 'systemd'].map((name) => `deploy/${name}`)
    expect(copied).toEqual([...files, ...folders, ...deploy, 'examples', 'docs'])
    expect(shipped.length).toBeGreaterThan(300)
    const idle = /\.test\.ts$|from '(?:vitest|fast-check)'|from '#testing\//
    // Plug-ins of the examples come with their tests.
    const own = shipped.filter((file) => !file.startsWith('examples/') && !file.startsWith('docs/'))
    expect(own.filter((file) => idle.test(file) || idle.test(readFileSync(file, 'utf8')))).toEqual([])
    const left = ['.git/config', '.gatehouse/gatehouse.db', '.env', 'node_modules/pg/index.js', 'test/run.ts', 'a.pem']
    expect(left.filter((file) => !isIgnored(file))).toEqual([])
  })

  test('has the documentation, examples and schemas of a release', () => {
    const ofRelease = [...Object.keys(copies).flatMap(filesOf), ...documentation()]
    expect(ofRelease.length).toBeGreaterThan(100)
    expect(ofRelease.filter((file) => !shipped.includes(file))).toEqual([])
    const docs = new Set(documentation())
    expect(shipped.filter((file) => file.startsWith('docs/') && !docs.has(file))).toEqual([])
  })

  test('has the files of deploy that its pages link to, except its own recipe', () => {
    const linked = documentation()
      .filter((page) => page.endsWith('.md'))
      .flatMap((page) =>
        Array.from(readFileSync(page, 'utf8').matchAll(/\]\(((?:\.\.\/)+deploy\/[^)#]+)/g), ([, link = '']) =>
          join(dirname(page), link),
        ),
      )
    expect(linked).toContain('deploy/prometheus/alerts.yaml')
    const ofRelease = new Set(Object.keys(copies).flatMap(filesOf))
    expect(linked.filter((file) => !ofRelease.has(file))).toEqual(['deploy/Dockerfile'])
  })

  test('every package that its code imports is a dependency', () => {
    const imported = new Set(
      shipped
        .filter((file) => file.endsWith('.ts'))
        .flatMap((file) => Array.from(readFileSync(file, 'utf8').matchAll(/(?:from |import\()'([@a-z][\w@/.:-]*)'/g)))
        .map(([, name = '']) => name)
        .filter((name) => !isBuiltin(name))
        .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')),
    )
    expect(imported.size).toBeGreaterThan(10)
    expect([...imported].filter((name) => manifest.dependencies[name] === undefined)).toEqual([])
  })

  test('the gateway starts and serves with these files alone', { timeout: 60_000 }, async () => {
    const root = temporaryFolder()
    for (const file of shipped) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      cpSync(file, join(root, file))
    }
    cpSync('portal/dist', join(root, 'portal/dist'), { recursive: true })
    symlinkSync(resolve('node_modules'), join(root, 'node_modules'))
    const program = join(root, 'bin/gatehouse')
    const told = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 30_000 })
    expect(told.stdout.trim()).toBe(manifest.version)

    const schema = spawnSync(program, ['schema', '--kind', 'Application'], { encoding: 'utf8', timeout: 30_000 })
    expect(JSON.parse(schema.stdout)).toHaveProperty('$schema')

    const data = temporaryFolder()
    const args = ['serve', '--config', resolve('examples/quickstart'), '--data', data, '--listen', '127.0.0.1:0']
    const child = spawn(program, [...args, '--metrics', 'off'], { stdio: ['ignore', 'inherit', 'pipe'] })
    const ended = once(child, 'exit')
    const late = setTimeout(() => child.kill('SIGKILL'), 50_000)
    let output = ''
    for await (const chunk of child.stderr.setEncoding('utf8')) {
      output += chunk
      const url = /Listening on (http:\S+)/.exec(output)?.[1]
      if (url === undefined || child.killed) continue
      expect((await fetch(`${url}/ready`)).status).toBe(200)
      child.kill('SIGTERM')
    }
    clearTimeout(late)
    expect((await ended)[0]).toBe(0)
    expect(existsSync(join(data, 'gatehouse.db'))).toBe(true)
  })
})

interface Instruction {
  /** In upper case. */
  readonly name: string
  readonly text: string
}

interface Stage {
  readonly base: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

/** The stages of a Dockerfile, in order; the last one is the image. */
function readDockerfile(text: string): Stage[] {
  const lines = text.replace(/^\s*#.*\n/gm, '').replace(/\\\n/g, ' ')
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = []
  for (const line of lines.split('\n').map((one) => one.trim().replace(/\s+/g, ' '))) {
    if (line === '') continue
    const [word = '', ...rest] = line.split(' ')
    const instruction = { name: word.toUpperCase(), text: rest.join(' ') }
    if (instruction.name === 'FROM') {
      const [base = '', , name] = rest
      stages.push({ base, name, instructions: [] })
    } else {
      const stage = stages.at(-1)
      if (stage === undefined) throw new Error(`before the first FROM: ${line}`)
      stage.instructions.push(instruction)
    }
  }
  return stages
}

/** Whether a .dockerignore excludes a file: the last pattern that matches it, or a folder above it, decides. */
function dockerIgnore(text: string): (file: string) => boolean {
  const patterns = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keep: line.startsWith('!'), form: formOf(line.replace(/^!/, '').replace(/\/$/, '')) }))
  return (file) => {
    const parts = file.split('/')
    const paths = parts.map((_, i) => parts.slice(0, i + 1).join('/'))
    const last = patterns.findLast(({ form }) => paths.some((path) => form.test(path)))
    return last !== undefined && !last.keep
  }
}

/** Stars match names that start with a dot too, unlike in a shell. */
function formOf(glob: string): RegExp {
  const parts = glob.split(/(\*\*\/|\*)/).map((part) => {
    if (part === '**/') return '(?:.*/)?'
    return part === '*' ? '[^/]*' : RegExp.escape(part)
  })
  return new RegExp(`^${parts.join('')}$`)
}
