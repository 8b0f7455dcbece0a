import { globSync, readFileSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { configResources } from '#config/sources/cluster-documents.ts'
import { valuesSchema, valuesSchemaFile } from '../deploy/write-values-schema.ts'

const folder = 'deploy/helm/gatehouse'
const read = (file: string): string => readFileSync(`${folder}/${file}`, 'utf8')
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

describe('the chart', () => {
  test('its values.schema.json matches the schemas of the code (npm run values-schema)', () => {
    expect(readFileSync(valuesSchemaFile, 'utf8')).toBe(valuesSchema())
  })

  test('its schema has no pattern that Go cannot compile', () => {
    const patterns = Array.from(valuesSchema().matchAll(/"pattern": "(.*)"/g), (match) => match[1] ?? '')
    expect(patterns.length).toBeGreaterThan(5)
    expect(patterns.filter((pattern) => /\(\?[=!<]/.test(pattern))).toEqual([])
  })

  test('every accepted value is in values.yaml, and no other', () => {
    const { properties } = JSON.parse(valuesSchema()) as { properties: object }
    const values = parse(read('values.yaml')) as object
    expect(Object.keys(values).sort()).toEqual(
      Object.keys(properties)
        .filter((name) => name !== 'global')
        .sort(),
    )
  })

  test('the guide documents every value', () => {
    const guide = readFileSync('docs/guides/deploying.md', 'utf8')
    const told = Array.from(guide.matchAll(/`([A-Za-z]+)(?:\.[A-Za-z.[\]]+)?`/g), (match) => match[1] ?? '')
    const values = Object.keys(parse(read('values.yaml')) as object)
    expect(values.filter((name) => !told.includes(name))).toEqual([])
  })

  test('it installs the version that it is part of', () => {
    expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version })
    expect(readFileSync('deploy/Dockerfile', 'utf8')).toContain(`gatehouse:${version} `)
  })

  test('its definitions are those of deploy/crds', () => {
    expect(realpathSync(`${folder}/crds`)).toBe(realpathSync('deploy/crds'))
  })

  test('each definition begins a document, since helm show crds puts nothing between files', () => {
    const files = globSync('deploy/crds/*.yaml')
    expect(files.length).toBeGreaterThan(20)
    expect(files.filter((file) => !readFileSync(file, 'utf8').startsWith('---\n'))).toEqual([])
  })

  test('its alerts and its dashboard are those of deploy/prometheus and deploy/grafana', () => {
    for (const name of ['prometheus', 'grafana'])
      expect(realpathSync(`${folder}/${name}`)).toBe(realpathSync(`deploy/${name}`))
  })

  test('it grants rights to every configuration kind, and to no other', () => {
    const [, list = ''] = /define "gatehouse\.kinds" -}}\n([^{]*)/.exec(read('templates/_helpers.tpl')) ?? []
    expect(parse(list)).toEqual(configResources.map(({ plural }) => plural).sort())
  })

  test('the tests render each of its values files', () => {
    const files = globSync(`${folder}/**/*values*.yaml`).map((file) => basename(file))
    const expected = [
      'values.yaml',
      'values-sts.yaml',
      ...globSync(`${folder}/ci/*-values.yaml`).map((f) => basename(f)),
    ]
    expect(files.sort()).toEqual(expected.sort())
  })
})
