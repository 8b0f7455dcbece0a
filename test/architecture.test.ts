import { globSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const base = ['kernel', 'identity', 'protocols', 'openunison']
const belowServices = [...base, 'database', 'sdk', 'config']
const belowRequests = [...belowServices, 'audit', 'keys', 'directory', 'mail']
const belowFeatures = [...belowRequests, 'requests', 'workflows']
const belowServer = [...belowFeatures, 'features']

/** The rooms of docs/architecture.md, each with the rooms that it may import. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  identity: ['kernel'],
  protocols: ['kernel'],
  openunison: ['kernel', 'identity', 'protocols'],
  database: ['kernel', 'identity', 'protocols'],
  sdk: base,
  config: [...base, 'sdk'],
  audit: belowServices,
  keys: [...belowServices, 'audit'],
  directory: belowServices,
  mail: [...belowServices, 'audit'],
  requests: belowRequests,
  workflows: [...belowRequests, 'requests'],
  features: belowFeatures,
  adapters: [...base, 'sdk'],
  catalog: ['kernel', 'sdk', 'config', 'workflows', 'features', 'adapters'],
  server: belowServer,
  'openunison/import': [...belowServer, 'adapters', 'catalog', 'server'],
  cli: [...belowServer, 'adapters', 'catalog', 'server', 'openunison/import'],
}

/** A feature imports another one only if the pair is listed here. */
const featurePairs = [
  'portal > scim',
  'portal > sts',
  'portal > issuer',
  'portal > reports',
  'portal > account',
  'portal > passwords',
  'portal > registration',
  'portal > reconciliation',
  'call-workflow > portal',
  'account > passwords',
  'registration > passwords',
]
/** Code for one system that two slots use. */
const adapterPairs = ['directory-inserts/ldap > targets/ldap', 'directory-inserts/database > targets/database']
const mostFiles = 30

const sources = globSync('src/**/*.ts').sort()
const production = sources.filter((file) => !file.endsWith('.test.ts'))
const paths = new Set(production)

const roomOf = (file: string): string => {
  const [, room = '', part = ''] = file.split('/')
  return room === 'openunison' && part === 'import' ? 'openunison/import' : room
}
const partsOf = (file: string, from: number, to: number): string => file.split('/').slice(from, to).join('/')
const isContract = (file: string): boolean => file.includes('/contract/')
const importsOf = (file: string): string[] =>
  Array.from(readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g), (match) => match[1] ?? '')
const fileOf = (from: string, to: string): string =>
  to.startsWith('#') ? `src/${to.slice(1)}` : to.startsWith('.') ? relative('.', resolve(dirname(from), to)) : to

interface Import {
  readonly from: string
  readonly to: string
}
const imports: readonly Import[] = production.flatMap((from) =>
  importsOf(from)
    .map((to) => ({ from, to: fileOf(from, to) }))
    .filter(({ to }) => paths.has(to)),
)

function isWrong({ from, to }: Import): boolean {
  // Browsers load contracts.
  if (isContract(from) && !isContract(to) && to !== 'src/kernel/wire.ts') return true
  const [room, other] = [roomOf(from), roomOf(to)]
  if (room !== other) return rooms[room]?.includes(other) !== true
  if (room === 'features') {
    const [feature, used] = [partsOf(from, 2, 3), partsOf(to, 2, 3)]
    return feature !== used && !featurePairs.includes(`${feature} > ${used}`)
  }
  if (room === 'adapters') {
    const [adapter, used] = [partsOf(from, 2, 4), partsOf(to, 2, 4)]
    return adapter !== used && !used.endsWith('/shared') && !adapterPairs.includes(`${adapter} > ${used}`)
  }
  return false
}

/** Groups of nodes that lead back to themselves (strongly connected components, by Tarjan). */
function circlesIn(edges: readonly Import[]): string[] {
  const next = Map.groupBy(edges, ({ from }) => from)
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const circles: string[] = []
  const visit = (node: string): void => {
    const own = index.size
    index.set(node, own)
    low.set(node, own)
    stack.push(node)
    for (const { to } of next.get(node) ?? []) {
      if (!index.has(to)) visit(to)
      if (stack.includes(to)) low.set(node, Math.min(low.get(node) ?? own, low.get(to) ?? own))
    }
    if (low.get(node) !== own) return
    const circle = stack.splice(stack.indexOf(node))
    if (circle.length > 1) circles.push(circle.sort().join(', '))
  }
  for (const node of next.keys()) if (!index.has(node)) visit(node)
  return circles
}

describe('the source tree', () => {
  test('has sources to check', () => {
    expect(production.length).toBeGreaterThan(100)
    expect(imports.length).toBeGreaterThan(1000)
    expect([...new Set(production.map(roomOf))].sort()).toEqual(Object.keys(rooms).sort())
  })

  test('imports follow the allowed directions, and no folders import each other', () => {
    const wrong = imports.filter(isWrong).map(({ from, to }) => `${from} imports ${to}`)
    const folders = imports
      .map(({ from, to }) => ({ from: dirname(from), to: dirname(to) }))
      .filter(({ from, to }) => from !== to)
    expect({ wrong, circles: circlesIn(folders) }).toEqual({ wrong: [], circles: [] })
  })

  test('no file imports itself through others, not even for a type', () => {
    expect(circlesIn(imports)).toEqual([])
  })

  test('a relative import never leaves its room, and test support stays out of production', () => {
    const wrong = production.flatMap((file) =>
      importsOf(file)
        .filter((to) => to.startsWith('#testing/') || (to.startsWith('.') && !to.endsWith('package.json')))
        .filter((to) => {
          if (to.startsWith('#')) return true
          return roomOf(relative('.', resolve(dirname(file), to))) !== roomOf(file)
        })
        .map((to) => `${file} imports ${to}`),
    )
    expect(wrong).toEqual([])
  })

  test('node:http is imported for its types only, since an import of its values costs memory', () => {
    const wrong = production
      .filter((file) => file !== 'src/protocols/plugin/http-thread.ts')
      .filter((file) => /^import (?!type )[^\n]* from 'node:http'/m.test(readFileSync(file, 'utf8')))
    expect(wrong).toEqual([])
  })

  test('no folder has more than 30 files, so that it can be read as a list', () => {
    const folders = Map.groupBy(production, (file) => dirname(file))
    const large = Array.from(folders, ([folder, files]) => `${folder}: ${files.length}`)
    expect(large.filter((line) => Number(line.split(': ')[1]) > mostFiles)).toEqual([])
  })

  test('there are no barrels, catch-all files, test switches or silenced types', () => {
    const named = sources.filter((file) => /\/(?:index|utils?|helpers?|misc|common)\.ts$/.test(file))
    const pattern = /NODE_ENV|VITEST|@ts-(?:ignore|nocheck|expect-error)|\bas any\b|:\s*any\b|\benum\s+\w+\s*\{/
    const silenced = production.filter((file) => pattern.test(readFileSync(file, 'utf8')))
    expect({ named, silenced }).toEqual({ named: [], silenced: [] })
  })
})
