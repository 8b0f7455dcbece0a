import { writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LoadResult } from '#config/load/load.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { fakeCatalog } from '#testing/modules/fake-catalog.ts'
import { type ConfigWatch, watchConfiguration } from './folder-watch.ts'

let root = ''
let folder = ''
let watching: ConfigWatch | undefined
let results: LoadResult[] = []
const errors: unknown[] = []

const org = (label: string): string =>
  `apiVersion: gatehouse.dev/v1\nkind: Org\nmetadata: { name: o }\nspec: { uuid: '1', label: ${label} }\n`

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'gatehouse-watch-'))
  folder = join(root, 'config')
  results = []
  await mkdir(folder)
  await writeFile(join(folder, 'org.yaml'), org('first'))
})

afterEach(async () => {
  await watching?.close()
  await rm(root, { recursive: true, force: true })
  expect(errors).toEqual([])
})

async function start(pollMillis = 50, environment: Readonly<Record<string, string>> = {}): Promise<void> {
  const options = { folder, catalog: fakeCatalog, environment }
  const { hash } = await loadConfiguration(options)
  watching = watchConfiguration({
    ...options,
    hash,
    quietMillis: 10,
    pollMillis,
    onChange: (result) => void results.push(result),
    onError: (error) => void errors.push(error),
  })
}

const labels = () => results.map(({ configuration }) => configuration?.orgs.get('o')?.spec.label)
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 4000, interval: 20 })

test('reports a change, an invalid change and its repair, and nothing if the content is the same', async () => {
  // Written at once: if a file is emptied and then written, both states may be seen.
  const put = async (text: string): Promise<void> => {
    await writeFile(join(root, 'next'), text)
    await rename(join(root, 'next'), join(folder, 'org.yaml'))
  }
  await start()
  await put(org('second'))
  await eventually(() => expect(labels()).toEqual(['second']))
  await put(org('second'))
  await writeFile(join(folder, 'notes.txt'), 'not configuration')
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(labels()).toEqual(['second'])
  await put('kind: [')
  await eventually(() => expect(labels()).toEqual(['second', undefined]))
  expect(results[1]?.issues.length).toBeGreaterThan(0)
  await put(org('third'))
  await eventually(() => expect(labels().at(-1)).toBe('third'))
})

test('reads again what changes while it is read, so that old and new files are not mixed', async () => {
  let change = (): void => {}
  const environment = {
    // Read while the objects are made of files that were read before.
    get LABEL(): string {
      change()
      return 'text'
    },
  }
  await start(50, environment)
  change = () => {
    change = () => {}
    writeFileSync(join(folder, 'more.yaml'), org('more').replaceAll("'1'", "'2'").replace('name: o', 'name: p'))
  }
  await writeFile(join(root, 'next'), org('"#[LABEL]"'))
  await rename(join(root, 'next'), join(folder, 'org.yaml'))
  await eventually(() => expect(results.length).toBeGreaterThan(0))
  expect([...(results[0]?.configuration?.orgs.keys() ?? [])].sort()).toEqual(['o', 'p'])
})

test('sees an editor that writes a new file and renames it over the old', async () => {
  await start()
  await writeFile(join(folder, '.org.yaml.swp'), org('renamed'))
  await rename(join(folder, '.org.yaml.swp'), join(folder, 'org.yaml'))
  await eventually(() => expect(labels()).toEqual(['renamed']))
})

test('sees the link swap of a mounted ConfigMap', async () => {
  await rm(join(folder, 'org.yaml'))
  for (const version of ['one', 'two']) {
    await mkdir(join(folder, `..${version}`))
    await writeFile(join(folder, `..${version}`, 'org.yaml'), org(version))
  }
  await symlink('..one', join(folder, '..data'))
  await symlink(join('..data', 'org.yaml'), join(folder, 'org.yaml'))
  await start()
  await symlink('..two', join(folder, '..new'))
  await rename(join(folder, '..new'), join(folder, '..data'))
  await eventually(() => expect(labels()).toEqual(['two']))
})

test('survives a folder that disappears and returns', async () => {
  await start()
  await rename(folder, join(root, 'old'))
  await eventually(() => expect(results).toHaveLength(1))
  expect(results[0]?.configuration).toBeUndefined()
  await mkdir(folder)
  await writeFile(join(folder, 'org.yaml'), org('back'))
  await eventually(() => expect(labels().at(-1)).toBe('back'))
  await writeFile(join(folder, 'org.yaml'), org('again'))
  await eventually(() => expect(labels().at(-1)).toBe('again'))
})

test('is notified by the file system long before the next poll', async () => {
  await start(60_000)
  await new Promise((resolve) => setTimeout(resolve, 200))
  await mkdir(join(folder, 'sub'))
  await rename(join(folder, 'org.yaml'), join(folder, 'sub', 'org.yaml'))
  await eventually(() => expect(results).toHaveLength(1))
})

test('after close nothing is reported', async () => {
  await start()
  await watching?.close()
  await writeFile(join(folder, 'org.yaml'), org('late'))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(results).toEqual([])
})
