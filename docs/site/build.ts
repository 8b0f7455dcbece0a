import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { addressOf, allPages } from './contents.ts'
import { pageHtml, type Version } from './page-template.ts'
import { type RenderedPage, renderPage } from './render-page.ts'
import { searchIndex } from './search-index.ts'

const folder = import.meta.dirname
const versions = JSON.parse(readFileSync(join(folder, 'versions.json'), 'utf8')) as readonly Version[]

/** The files of the site by their paths, always the same for the same sources. Released versions are left out. */
export async function buildSite(): Promise<ReadonlyMap<string, string | Buffer>> {
  const isPage = (path: string): boolean => allPages.includes(path)
  const pages = new Map<string, RenderedPage>(
    allPages.map((page) => [page, renderPage(page, readFileSync(page, 'utf8'), isPage)]),
  )
  const titleOf = (page: string): string => pages.get(page)?.title ?? page
  const assets = new Map<string, string | Buffer>(await scripts())
  assets.set('assets/site.css', readFileSync(join(folder, 'site.css'), 'utf8'))
  assets.set('assets/icon.svg', readFileSync(join(folder, 'icon.svg'), 'utf8'))
  assets.set('assets/search.json', searchIndex(pages))
  for (const image of new Set(Array.from(pages.values()).flatMap(({ images }) => images))) {
    assets.set(addressOf(image), readFileSync(image))
  }

  const site = new Map<string, string | Buffer>()
  for (const version of versions.filter(({ released }) => !released)) {
    for (const [path, content] of assets) site.set(`${version.name}/${path}`, content)
    for (const [page, rendered] of pages) {
      site.set(`${version.name}/${addressOf(page)}`, pageHtml({ page, version, versions, rendered, titleOf }))
    }
  }
  site.set(
    'versions.json',
    `${JSON.stringify(
      versions.map(({ name, about }) => ({ name, about })),
      null,
      2,
    )}\n`,
  )
  site.set('index.html', entrance((versions.find(({ released }) => released) ?? versions[0])?.name ?? ''))
  return site
}

/** The address without a version leads to the newest release, or to the main branch before the first one. */
const entrance = (version: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=${version}/index.html">
<title>Gatehouse documentation</title>
<a href="${version}/index.html">Gatehouse documentation</a>
</html>
`

async function scripts(): Promise<[string, string][]> {
  const vite = await import('vite')
  const built = await vite.build({
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      modulePreload: { polyfill: false },
      rolldownOptions: {
        input: { site: join(folder, 'client/site.ts'), theme: join(folder, 'client/theme.ts') },
        output: { entryFileNames: 'assets/[name].js' },
      },
    },
  })
  if (!('output' in built)) throw new Error('there is more than one build')
  return built.output.flatMap((file) => (file.type === 'chunk' ? [[file.fileName, file.code]] : []))
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { out: { type: 'string', default: 'docs/dist' } } })
  const site = await buildSite()
  // Folders of released versions stay.
  for (const { name, released } of versions)
    if (!released) rmSync(join(values.out, name), { recursive: true, force: true })
  const hash = createHash('sha256')
  for (const [path, content] of site) {
    const file = join(values.out, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    hash.update(path).update(content)
  }
  process.stdout.write(`Wrote ${site.size} files to ${values.out} (sha256 ${hash.digest('hex').slice(0, 16)})\n`)
}
