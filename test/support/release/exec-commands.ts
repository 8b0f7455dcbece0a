import { globSync, readFileSync } from 'node:fs'

/** A line that a page tells its reader to run in a container. */
export interface ExecCommand {
  readonly page: string
  /** As it is written, on one line. */
  readonly line: string
}

const lineForm = /(?:kubectl|docker) [^\n`]*?\bexec\b[^\n`]*? -- gatehouse [^\n`]*/g

/** The commands of the pages and of the chart's notes that run `gatehouse` by `exec`. */
export function execCommands(notes: string): ExecCommand[] {
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'deploy/**/*.{md,txt}'], {
    exclude: ['docs/dist'],
  })
  const texts = pages
    .filter((page) => !page.endsWith('NOTES.txt'))
    .sort()
    .map((page) => [page, readFileSync(page, 'utf8')] as const)
  return [...texts, ['NOTES.txt', notes] as const].flatMap(([page, text]) =>
    Array.from(text.replace(/ *\\\n\s*/g, ' ').matchAll(lineForm), ([line]) => ({ page, line: line.trim() })),
  )
}
