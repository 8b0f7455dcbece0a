import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import { kinds } from '#config/build/kinds.ts'
import { pureFunctions } from '#config/report-statements/read-statement.ts'
import { reportViews } from '#config/report-statements/report-views.ts'
import { errorCodes } from '#kernel/errors.ts'
import { gaugeRules } from '#server/workers/combined-metrics.ts'
import { allMetrics } from '#testing/gateway/all-metrics.ts'
import { referencePages, slots } from '../docs/write-reference.ts'

const pagesOf = (folder: string): string[] =>
  globSync(`docs/reference/${folder}/*.md`)
    .map((page) => basename(page, '.md'))
    .sort()

/** The names in backticks in the first column of the page's tables. */
const documentedRows = (page: string): string[] =>
  Array.from(readFileSync(page, 'utf8').matchAll(/^\| *`([^`]+)`/gm), (match) => match[1] ?? '')

describe.each(Object.entries(slots))('docs/reference/%s', (folder, modules) => {
  test('has a page for every module, and a module for every page', () => {
    expect(pagesOf(folder)).toEqual(modules.map(({ name }) => name).sort())
  })

  test('the pages list every alias', () => {
    const missing = modules.flatMap(({ name, aliases }) => {
      const page = readFileSync(`docs/reference/${folder}/${name}.md`, 'utf8')
      return aliases.filter((alias) => !page.includes(alias)).map((alias) => `${name}: ${alias}`)
    })
    expect(missing).toEqual([])
  })
})

test('the pages are as npm run reference writes them', () => {
  const stale = Array.from(referencePages())
    .filter(([path, text]) => readFileSync(path, 'utf8') !== text)
    .map(([path]) => path)
  expect(stale).toEqual([])
})

test('every kind has a page and every page a kind', () => {
  expect(pagesOf('kinds')).toEqual([...new Set(kinds.map(({ kind }) => kind))].sort())
})

test('every error code is documented with its status, and no other', () => {
  const rows = Array.from(
    readFileSync('docs/reference/errors.md', 'utf8').matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm),
    ([, code, status]) => `${code} ${status}`,
  )
  expect(rows.sort()).toEqual(
    Object.entries(errorCodes)
      .map(([code, { status }]) => `${code} ${status}`)
      .sort(),
  )
})

test('the command line page has the help of every command', async () => {
  const file = 'docs/reference/command-line.md'
  const page = readFileSync(file, 'utf8')
  const helps = new Map<string, string>()
  for (const [, line = ''] of page.matchAll(/^\$ gatehouse (.*) --help$/gm)) {
    const [name = '', ...rest] = line.split(' ')
    const out: string[] = []
    const io = { stdout: (text: string) => void out.push(text), stderr: (text: string) => void out.push(text) }
    await (await commands[name]?.load())?.([...rest, '--help'], io)
    helps.set(line, out.join('\n'))
  }
  expect(Object.keys(commands).filter((name) => !helps.has(name))).toEqual([])
  const written = page.replace(
    /^\$ gatehouse (.*) --help\n[\s\S]*?^```$/gm,
    (_, line: string) => `$ gatehouse ${line} --help\n${helps.get(line)}\n\`\`\``,
  )
  // `npm test -- test/docs.test.ts -u` writes the page.
  await expect(written).toMatchFileSnapshot(`../${file}`)
})

test('every metric is documented, and no other', () => {
  const names = [...allMetrics().keys()]
  expect(documentedRows('docs/reference/metrics.md').sort()).toEqual(
    names.filter((name) => name.startsWith('gatehouse_')).sort(),
  )
})

test('the page of metrics has the rule of every gauge for workers', () => {
  const page = readFileSync('docs/reference/metrics.md', 'utf8')
  const rules = Array.from(page.matchAll(/^\| (Sum|Greatest|Least) \| (.*) \|/gm), ([, rule = '', names = '']) =>
    Array.from(names.matchAll(/`(gatehouse_\w+)`/g), ([, name = '']) => [name, rule]),
  ).flat()
  const words = { sum: 'Sum', max: 'Greatest', min: 'Least', each: 'Each' } as const
  expect(Object.fromEntries(rules)).toEqual(
    Object.fromEntries(Object.entries(gaugeRules).map(([name, rule]) => [name, words[rule]])),
  )
  const gauges = [...allMetrics()].filter(([name, { type }]) => type === 'gauge' && name.startsWith('gatehouse_'))
  expect(Object.keys(gaugeRules).sort()).toEqual(gauges.map(([name]) => name).sort())
})

test('every view for reports is documented, column by column, and every function', () => {
  const page = readFileSync('docs/reference/report-views.md', 'utf8')
  const [views = '', functions = ''] = page.split('\n## Functions\n')
  const documented = views
    .split(/^## /m)
    .slice(1)
    .map((text) => [
      text.slice(0, text.indexOf('\n')),
      Array.from(text.matchAll(/^\| `([^`]+)`/gm), ([, name]) => name),
    ])
  expect(Object.fromEntries(documented)).toEqual(reportViews)
  expect(Array.from(functions.matchAll(/`([^`]+)`/g), ([, name]) => name)).toEqual([...pureFunctions].sort())
})

test('the list of the reference has every page', () => {
  const list = readFileSync('docs/reference/README.md', 'utf8')
  const pages = globSync('docs/reference/**/*.md').map((page) => page.replace('docs/reference/', ''))
  expect(pages.filter((page) => page !== 'README.md' && !list.includes(`](${page})`))).toEqual([])
})

test('file names in the architecture page exist', () => {
  const page = readFileSync('docs/architecture.md', 'utf8')
  const named = Array.from(
    page.matchAll(/`((?:src|test|bench|examples|docs|bin)\/[\w./-]+|[a-z]+\/[\w./-]+\.ts)`/g),
    ([, path = '']) => (/^(?:src|test|bench|examples|docs|bin)\//.test(path) ? path : `src/${path}`),
  )
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter((path) => !existsSync(path))).toEqual([])
})
