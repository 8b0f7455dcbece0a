import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { shellBlocksOf, walks } from '#testing/stories/documented-commands.ts'
import { walkThrough } from '#testing/stories/walk.ts'

/** The page that README sends newcomers to for their first calls. */
const firstCalls = 'docs/guides/with-curl.md'

test.each(walks.filter(({ page }) => page === firstCalls))('the commands of $page work', walkThrough)

test('README is one screen, with two commands and eight links', () => {
  const readme = readFileSync('README.md', 'utf8')
  const links = Array.from(readme.matchAll(/\]\(([^)]+)\)/g), ([, link]) => link)
  expect(links).toHaveLength(8)
  expect(links).toContain(firstCalls)
  expect(readme.split(/\s+/).length).toBeLessThan(500)
  const scripts = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).scripts)
  const commands = shellBlocksOf('README.md')[0]
    ?.replace(/#.*/g, '')
    .match(/npm \w+/g)
  expect(commands).toEqual(['npm ci', 'npm start', 'npm ci', 'npm test'])
  expect(scripts).toEqual(expect.arrayContaining(['start', 'test', 'release']))
})
