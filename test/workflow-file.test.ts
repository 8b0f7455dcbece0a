import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

interface Step {
  readonly uses?: string
  readonly run?: string
}

const text = readFileSync('.github/workflows/ci.yml', 'utf8')
const { permissions, jobs } = parse(text) as {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, { readonly needs?: string; readonly steps: readonly Step[] }>>
}
const commands = (job: string): string => (jobs[job]?.steps ?? []).map(({ run = '' }) => run).join('\n')

test('the workflow runs what a clean clone runs, and releases only after it', () => {
  expect(commands('test')).toContain('.ci/run')
  expect(existsSync('.ci/run')).toBe(true)
  expect(jobs['release']?.needs).toBe('test')
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const [, script = ''] of commands('release').matchAll(/npm run (\w+)/g)) expect(scripts).toHaveProperty(script)
})

test('it has few rights, and no expression in a command that someone outside can write', () => {
  expect(permissions).toEqual({ contents: 'read' })
  const used = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses = [] }) => uses))
  for (const action of used) expect(action).toMatch(/^actions\//)
  for (const job of Object.keys(jobs)) expect(commands(job)).not.toContain('${{')
})
