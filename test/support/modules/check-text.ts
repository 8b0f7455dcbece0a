import type { Catalog } from '#config/configuration/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { buildConfiguration, type LoadOptions, type LoadResult } from '#config/load/load.ts'

/** Splits a text into files at lines `### name.yaml`; without such a line it is one file, `config.yaml`. */
export function filesOf(text: string): { name: string; text: string }[] {
  const parts = text.split(/^### (\S+)\n/m)
  const files = []
  if ((parts[0] ?? '').trim() !== '') files.push({ name: 'config.yaml', text: parts[0] ?? '' })
  for (let i = 1; i < parts.length; i += 2) files.push({ name: parts[i] ?? '', text: parts[i + 1] ?? '' })
  return files.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Loads configuration from a text, without a folder. */
export function loadText(text: string, catalog: Catalog, options: Partial<LoadOptions> = {}): LoadResult {
  const sources = { files: filesOf(text), keys: new Map([['issuer', 'digest']]), problems: [] }
  return buildConfiguration(sources, {
    folder: '/nowhere',
    catalog,
    environment: {},
    strictSecrets: false,
    ...options,
  })
}

/** The output of `gatehouse check`. */
export function checkText(text: string, catalog: Catalog, options: Partial<LoadOptions> = {}): string[] {
  return loadText(text, catalog, options).issues.map(formatIssue)
}
