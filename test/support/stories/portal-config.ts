import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface PortalConfig {
  readonly folder: string
  remove(): void
}

export interface PortalChanges {
  /** Files of the example, by name. */
  readonly changes?: Readonly<Record<string, (text: string) => string>>
  /** Further files. */
  readonly more?: Readonly<Record<string, string>>
}

/** A copy of examples/portal, with files changed and others added. */
export function portalConfig({ changes = {}, more = {} }: PortalChanges): PortalConfig {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-portal-'))
  cpSync('examples/portal', folder, { recursive: true })
  for (const [file, change] of Object.entries(changes)) {
    const before = readFileSync(join(folder, file), 'utf8')
    const after = change(before)
    if (after === before) throw new Error(`nothing was changed in ${file}`)
    writeFileSync(join(folder, file), after)
  }
  for (const [file, text] of Object.entries(more)) writeFileSync(join(folder, file), text)
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
