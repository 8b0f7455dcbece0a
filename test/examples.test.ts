import { globSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'

const examples = [...new Set(globSync('examples/*/*.yaml').map((file) => dirname(file)))].sort()

test('there are examples', () => expect(examples).toContain('examples/quickstart'))

test.each(examples)('gatehouse check reports nothing about %s', async (folder) => {
  const { issues, configuration } = await loadConfiguration({ folder, catalog, environment: {}, strictSecrets: true })
  expect(issues.map(formatIssue)).toEqual([])
  expect(configuration).toBeDefined()
})
