import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix, relative } from 'node:path'
import { promisify } from 'node:util'
import MiniSearch from 'minisearch'
import { beforeAll, describe, expect, test } from 'vitest'
import { notRun, pagesWithCommands, shellBlocksOf, walks } from '#testing/stories/documented-commands.ts'
import { buildSite } from '../docs/site/build.ts'
import { searchOptions, stem } from '../docs/site/client/search-options.ts'
import { excerptOf, searchSite } from '../docs/site/client/search-site.ts'
import { allPages } from '../docs/site/contents.ts'
import { renderPage } from '../docs/site/render-page.ts'
import { drawSequence } from '../docs/site/sequence-diagram.ts'

test('the menu has every page of docs once, and no other', () => {
  const documents = globSync('docs/**/*.md').sort()
  expect(documents.length).toBeGreaterThan(150)
  // Add a page to the list in docs/site/contents.ts.
  expect(documents.filter((page) => !allPages.includes(page))).toEqual([])
  expect(allPages.filter((page) => !existsSync(page))).toEqual([])
  expect(allPages.filter((page, index) => allPages.indexOf(page) !== index)).toEqual([])
})

test('links in Markdown lead to files and headings', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...globSync('{docs,examples}/**/*.md')]
  const anchors = new Map<string, readonly string[]>()
  const anchorsOf = (page: string): readonly string[] => {
    const known =
      anchors.get(page) ?? renderPage(page, readFileSync(page, 'utf8'), () => false).headings.map(({ id }) => id)
    anchors.set(page, known)
    return known
  }
  const withoutCode = (text: string): string => text.replace(/^ *```[\s\S]*?^ *```$/gm, '').replace(/`[^`\n]*`/g, '')
  const dead = pages.flatMap((page) =>
    Array.from(
      withoutCode(readFileSync(page, 'utf8')).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)/g),
      ([, link = '']) => link,
    )
      .filter((link) => {
        const [file = '', anchor] = link.split('#')
        const target = file === '' ? page : posix.join(dirname(page), file)
        if (!existsSync(target)) return true
        return anchor !== undefined && !(target.endsWith('.md') && anchorsOf(target).includes(anchor))
      })
      .map((link) => `${page}: ${link}`),
  )
  expect(dead).toEqual([])
})

describe('the site', () => {
  let site: Awaited<ReturnType<typeof buildSite>>
  beforeAll(async () => {
    site = await buildSite()
  }, 60_000)
  const pagesOf = (): [string, string][] =>
    Array.from(site).flatMap(([path, content]) => (path.endsWith('.html') ? [[path, String(content)]] : []))

  // A build takes seconds, and much longer beside other work.
  test('npm run docs writes the same files in every build', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-docs-'))
    try {
      await promisify(execFile)('bin/node', ['docs/site/build.ts', '--out', folder])
      const written = globSync('**/*', { cwd: folder, withFileTypes: true })
        .filter((file) => file.isFile())
        .map((file) => relative(folder, join(file.parentPath, file.name)))
      expect(written.sort()).toEqual(Array.from(site.keys()).sort())
      const differ = Array.from(site).filter(
        ([path, content]) => !readFileSync(join(folder, path)).equals(Buffer.from(content)),
      )
      expect(differ.map(([path]) => path)).toEqual([])
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 240_000)

  test('has no dead links or anchors', () => {
    const ids = new Map(
      pagesOf().map(([path, html]) => [path, new Set(Array.from(html.matchAll(/ id="([^"]*)"/g), ([, id]) => id))]),
    )
    const dead = pagesOf().flatMap(([path, html]) =>
      Array.from(html.matchAll(/ (?:href|src)="([^"]*)"/g), ([, link = '']) => link)
        .filter((link) => !/^(?:https?:|mailto:)/.test(link))
        .filter((link) => {
          const [file = '', anchor] = link.split('#')
          const target = file === '' ? path : posix.join(posix.dirname(path), file)
          return !site.has(target) || (anchor !== undefined && ids.get(target)?.has(anchor) !== true)
        })
        .map((link) => `${path}: ${link}`),
    )
    expect(dead).toEqual([])
  })

  test('pages have a policy, and neither inline scripts nor inline styles', () => {
    const [, ...pages] = pagesOf().sort(([a], [b]) => (a === 'index.html' ? -1 : a.localeCompare(b)))
    expect(pages.length).toBeGreaterThan(300)
    const wrong = pages.filter(
      ([, html]) =>
        !html.includes('http-equiv="Content-Security-Policy"') || /<script>|<style| style="| on[a-z]+="/.test(html),
    )
    expect(wrong.map(([path]) => path)).toEqual([])
  })

  test('an address never begins with a slash, so that the site works in any folder', () => {
    expect(pagesOf().flatMap(([path, html]) => (/ (?:href|src)="\//.test(html) ? [path] : []))).toEqual([])
  })

  const search = (query: string) =>
    searchSite(MiniSearch.loadJSON(String(site.get('next/assets/search.json')), searchOptions), query)

  test.each([
    ['deprovision Entra', 'guides/entra-id.html'],
    ['filters.ScimGateway', 'reference/filters/filters.ScimGateway.html'],
    ['migrating OpenUnison', 'migration-from-openunison.html'],
    ['audit anchors', 'guides/audit.html'],
    ['SCHEMA_NEWER', 'guides/upgrading.html'],
    ['how do I rotate?', 'how-do-i.html'],
    ['reverse-proxy', 'how-do-i.html'],
    ['two people must approve', 'how-do-i.html'],
    ['2FA', 'guides/second-factors.html'],
    ['offboard an employee', 'how-do-i.html'],
  ])('the search for "%s" finds %s first', (query, page) => {
    expect(search(query).shown[0]?.address.split('#')[0]).toBe(page)
  })

  test.each([
    ['add a second approver', ['how-do-i.html#require-two-approvers']],
    ['rotate the signing key', ['how-do-i.html#rotate-a-signing-key', 'guides/sts-keys.html#rotation']],
    ['connect Entra ID', ['guides/entra-id.html']],
    [
      'what happens if Postgres is down',
      ['storage.html#when-the-database-is-away', 'how-do-i.html#know-what-happens-while-postgresql-is-down'],
    ],
    ['team lead may approve', ['how-do-i.html#let-the-team-lead-approve']],
    ['backup, restore', ['guides/backup-and-restore.html']],
    ['lost second factor', ['guides/second-factors.html', 'how-do-i.html#help-a-user-who-lost-the-second-factor']],
    ['behind nginx', ['guides/logging-in.html#behind-a-proxy', 'how-do-i.html#run-behind-nginx']],
    ['systemd', ['guides/scaling.html#as-a-service', 'how-do-i.html#run-as-a-service-with-systemd']],
    ['disable a user', ['how-do-i.html#disable-a-user', 'guides/console.html#users-and-groups']],
  ])('an operator who searches for "%s" finds the answer within three results', (query, answers) => {
    const first = search(query).shown.slice(0, 3)
    expect(first.filter(({ address }) => answers.some((answer) => address.startsWith(answer)))).not.toEqual([])
    // Each shows where the words are.
    for (const { excerpt } of first) expect(excerpt.some(({ isFound }) => isFound)).toBe(true)
  })

  test('a search without a word of the pages finds nothing', () => {
    for (const query of ['', '?!', '__', 'xyzzyplugh']) expect(search(query)).toEqual({ shown: [], total: 0 })
  })

  test('histories and reasons come after the pages that explain', () => {
    for (const query of ['token service', 'audit chains', 'approvals', 'upgrade the database']) {
      const pages = search(query).shown.map(({ address }) => address)
      expect(pages.length).toBeGreaterThan(10)
      expect(pages.slice(0, 5).filter((page) => /^(?:CHANGELOG|decisions)/.test(page))).toEqual([])
    }
  })

  test('the list of versions has the main branch and the version of the program', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const listed = JSON.parse(String(site.get('versions.json'))) as { name: string }[]
    expect(listed.map(({ name }) => name)).toEqual(expect.arrayContaining(['next', version]))
    expect(String(site.get('next/guides/mail.html'))).toContain(`href="../../${version}/index.html"`)
  })

  test('each journey and each protocol flow has a diagram', () => {
    const diagrams = (path: string): number => String(site.get(path)).split('<svg role="img"').length - 1
    expect(diagrams('next/architecture.html')).toBe(3)
    expect(diagrams('next/concepts/protocol-flows.html')).toBe(6)
  })
})

describe('the search', () => {
  test.each([
    ['rotate rotates rotated rotating rotation'],
    ['approve approves approved approving'],
    ['key keys'],
    ['log logs logged logging'],
    ['policy policies'],
    ['access'],
    ['status'],
  ])('the forms of a word are one term: %s', (words) => {
    expect(new Set(words.split(' ').map(stem)).size).toBe(1)
  })

  test('an excerpt is the part with the most of the words', () => {
    const text = `${'Nothing here. '.repeat(40)}Rotate the key first. ${'More about keys. '.repeat(40)}`
    const pieces = excerptOf(text, new Set(['rotate', 'key'].map(stem)))
    expect(pieces.filter(({ isFound }) => isFound).map((piece) => piece.text)).toContain('Rotate')
    const whole = pieces.map((piece) => piece.text).join('')
    expect(whole).toMatch(/^… .* …$/)
    expect(whole.length).toBeLessThan(200)
  })

  test('an excerpt without any of the words is the beginning, and a long word is cut', () => {
    expect(excerptOf('One two three.', new Set())).toEqual([{ text: 'One two three.', isFound: false }])
    expect(excerptOf('x'.repeat(5_000), new Set()).map(({ text }) => text.length)).toEqual([180, 2])
    expect(excerptOf('', new Set(['key']))).toEqual([])
  })
})

describe('a diagram', () => {
  const diagram = (...lines: string[]): string =>
    ['sequenceDiagram', 'accTitle: A & B talk', 'participant A as Ada', 'participant B as Bob', ...lines].join('\n')

  test('has its title for screen readers, and escapes texts', () => {
    const svg = drawSequence(diagram('A->>B: a < b', 'B-->>A: "yes"', 'Note over A,B: done', 'A->>A: think'))
    expect(svg).toContain('aria-label="A &amp; B talk"')
    expect(svg).toContain('a &lt; b')
    expect(svg).toContain('&quot;yes&quot;')
    expect(svg.match(/<polygon/g)).toHaveLength(3)
  })

  test.each([
    ['an unknown statement', diagram('loop forever'), 'not supported in a diagram: "loop forever"'],
    ['an unknown participant', diagram('A->>C: hello'), '"C" is not a participant'],
    ['another diagram', 'flowchart LR', 'only sequence diagrams are supported'],
    ['a diagram without a title', 'sequenceDiagram\nparticipant A as Ada', 'needs a line "accTitle: …"'],
  ])('%s fails the build', (_, source, message) => {
    expect(() => drawSequence(source)).toThrow(message)
  })

  test('an error names its page', () => {
    expect(() => renderPage('docs/x.md', '# X\n\n```mermaid\npie\n```\n', () => true)).toThrow(
      'docs/x.md: only sequence',
    )
  })
})

test('every block of shell commands is run, or has a reason why not', () => {
  const linesOf = (text: string): string[] => text.split('\n').map((line) => line.replace(/\s+#.*$/, '').trim())
  const isListed = new Set<string>()
  const isRun = new Set<string>()
  for (const { page, first = '', blocks } of walks) {
    const all = shellBlocksOf(page)
    for (const line of linesOf(first)) isRun.add(line)
    for (const at of blocks ?? all.keys()) {
      expect(all[at], `${page} has a block ${at}`).toBeDefined()
      isListed.add(`${page} ${at}`)
      for (const line of linesOf(all[at] ?? '')) isRun.add(line)
    }
  }
  for (const [page, reasons] of Object.entries(notRun)) {
    for (const at of Object.keys(reasons)) {
      expect(shellBlocksOf(page)[Number(at)], `${page} has a block ${at}`).toBeDefined()
      expect(isListed.has(`${page} ${at}`), `${page} ${at} is run, so it needs no reason`).toBe(false)
      isListed.add(`${page} ${at}`)
    }
  }
  const forgotten = pagesWithCommands().flatMap((page) =>
    shellBlocksOf(page).flatMap((block, at) =>
      // A walk of another page may have the same lines.
      isListed.has(`${page} ${at}`) || linesOf(block).every((line) => isRun.has(line)) ? [] : [`${page} ${at}`],
    ),
  )
  expect(isListed.size).toBeGreaterThan(80)
  // Add a block to one of the lists in test/support/stories/documented-commands.ts.
  expect(forgotten).toEqual([])
})
