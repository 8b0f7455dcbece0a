import { globSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { ConfigDocument } from '#config/context/config-document.ts'
import { readYaml } from '#config/context/locate.ts'
import { Issues } from '#kernel/issues.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { type Deprecation, deprecations, warnOfDeprecations } from './deprecations.ts'

const dates = { since: '0.3.0', removal: '2027-06-30', instead: 'use "other"' }

function warnings(entry: Deprecation, kind: string, yaml: string, embedded?: readonly string[]): string[] {
  const [parsed] = readYaml(yaml).documents
  if (parsed === undefined) throw new Error('no document')
  if (embedded !== undefined) parsed.embed(embedded)
  const value = parsed.toValue({ text: (one) => one, report: () => {} })
  const issues = new Issues()
  const ownName = (name: string): string => (name === 'com.example.Old' ? 'filters.Old' : name)
  warnOfDeprecations([{ kind, value, document: new ConfigDocument('a.yaml', parsed) }], issues, ownName, [entry])
  return issues.list.map(({ level, path, message }) => `${level} ${path.join('.')}: ${message}`)
}

const filter = (className: string, params: string): string =>
  `spec:\n  urls:\n    - filterChain:\n        - className: ${className}\n          params: ${params}\n`
const end = 'is deprecated since 0.3.0 and ends on 2027-06-30: use "other"'

test('a class is found by any of its names, at any depth', () => {
  const place = 'warning spec.urls.0.filterChain.0.className'
  for (const name of ['filters.Old', 'com.example.Old']) {
    const found = warnings({ className: 'filters.Old', ...dates }, 'Application', filter(name, '{}'))
    expect(found).toEqual([`${place}: the class filters.Old ${end}`])
  }
  expect(warnings({ className: 'filters.Old', ...dates }, 'Application', filter('filters.New', '{}'))).toEqual([])
})

test('a class is found in the tasks of a workflow', () => {
  const yaml = 'spec:\n  tasks: |-\n    - taskType: customTask\n      className: tasks.Old\n'
  const found = warnings({ className: 'tasks.Old', ...dates }, 'Workflow', yaml, ['spec', 'tasks'])
  expect(found).toEqual([`warning spec.tasks.0.className: the class tasks.Old ${end}`])
})

test('a parameter is found in a map and in a list, and only at its class', () => {
  const entry = { className: 'filters.Old', param: 'x', ...dates }
  const place = 'warning spec.urls.0.filterChain.0.params'
  const text = `the parameter "x" of filters.Old ${end}`
  expect(warnings(entry, 'Application', filter('filters.Old', '{ x: 1 }'))).toEqual([`${place}.x: ${text}`])
  const list = '[{ name: y, value: 1 }, { name: x, value: 1 }]'
  expect(warnings(entry, 'Application', filter('filters.Old', list))).toEqual([`${place}.1: ${text}`])
  expect(warnings(entry, 'Application', filter('filters.Old', '{ y: 1 }'))).toEqual([])
  expect(warnings(entry, 'Application', filter('filters.New', '{ x: 1 }'))).toEqual([])
})

test('a field and a version are found at their kind only', () => {
  const yaml = 'apiVersion: openunison.tremolo.io/v1\nspec: { old: { part: 1 } }\n'
  const field = { kind: 'Org', field: 'spec.old.part', ...dates }
  expect(warnings(field, 'Org', yaml)).toEqual([`warning spec.old.part: the field "spec.old.part" of Org ${end}`])
  expect(warnings(field, 'Report', yaml)).toEqual([])
  const version = { kind: 'Workflow', version: 'v1', ...dates }
  expect(warnings(version, 'Workflow', yaml)).toEqual([`warning apiVersion: version v1 of Workflow ${end}`])
  expect(warnings({ ...version, version: 'v2' }, 'Workflow', yaml)).toEqual([])
})

test('check reports a deprecated class of a configuration as a warning', async () => {
  const listed = deprecations as Deprecation[]
  listed.push({ className: 'filters.ScimGateway', ...dates })
  onTestFinished(() => void listed.pop())
  const { code, stdout } = await runCommand(['check', '--config', 'examples/quickstart'])
  expect(stdout).toMatch(/^people\.yaml:\d+:\d+: warning: \S+className: the class filters\.ScimGateway is deprecated/m)
  expect(code).toBe(0)
  expect((await runCommand(['check', '--config', 'examples/quickstart', '--strict'])).code).toBe(1)
})

test('every deprecation has a version, a date and a page to read', () => {
  expect(globSync('docs/reference/deprecations.md')).toHaveLength(1)
  for (const { since, removal, instead } of deprecations) {
    expect(since).toMatch(/^\d+\.\d+\.\d+$/)
    expect(new Date(removal).toISOString()).toBe(`${removal}T00:00:00.000Z`)
    expect(instead).not.toBe('')
  }
})
