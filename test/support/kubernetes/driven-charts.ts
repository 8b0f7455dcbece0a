import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { expect } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { buildConfiguration } from '#config/load/load.ts'

const folder = join(import.meta.dirname, '../../openunison-portal')

/** Loads objects in the form of OpenUnison's charts. */
export function loadCharts(names: readonly string[], values = '', more: Readonly<Record<string, string>> = {}) {
  const objects = names.map((name) => ({ name, text: readFileSync(join(folder, `${name}.yaml`), 'utf8') }))
  const files = values === '' ? objects : [...objects, { name: 'values.yaml', text: values }]
  const sources = { files, keys: new Map<string, string>(), problems: [] }
  const environment = { OU_HOST: 'portal.acme.test', ...more }
  return buildConfiguration(sources, { folder: '/nowhere', catalog, environment, strictSecrets: false })
}

/** What a test did with charts and a login until it ended well; `–` for what these charts are not about. */
export interface DrivenCharts {
  readonly login: string
  readonly portal: string
  readonly kubectl: string
  readonly namespaces: string
  readonly dashboards: string
}

const file = join(import.meta.dirname, '../../openunison-charts.json')
const documented = (): Record<string, DrivenCharts & { readonly objects: string }> =>
  JSON.parse(readFileSync(file, 'utf8'))

/**
 * At the end of a test that drove charts, or a part of what they are for: what docs/openunison.md says of it is what happened. With
 * GATEHOUSE_WRITE_CHARTS in the environment, writes it instead, and `npm run reference` makes the page.
 */
export function expectDocumented(
  charts: string,
  sets: readonly string[],
  seen: Partial<DrivenCharts>,
  values: Readonly<Record<string, string>> = {},
): void {
  const { found } = loadCharts(sets, '', values)
  const served = found.filter(({ cause }) => cause === undefined).length
  const row = { objects: `${served} of ${found.length}`, ...seen }
  const rows = documented()
  if (process.env['GATEHOUSE_WRITE_CHARTS'] !== undefined) {
    const next = Object.entries({ ...rows, [charts]: { ...rows[charts], ...row } }).sort(([a], [b]) => (a < b ? -1 : 1))
    writeFileSync(file, `${JSON.stringify(Object.fromEntries(next), undefined, 2)}\n`)
  } else expect(rows[charts]).toMatchObject(row)
}
