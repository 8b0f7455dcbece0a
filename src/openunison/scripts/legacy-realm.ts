import { readFileSync } from 'node:fs'
import { findPackageJSON, stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parse } from 'acorn'
import type { LegacySignatures } from './legacy-signatures.ts'

/** The modules of the runtime that legacy scripts run in, and how their functions are called. */
export interface LegacyRealm {
  readonly modules: readonly RuntimeModule[]
  readonly entry: string
  readonly signatures: LegacySignatures
}

interface RuntimeModule {
  readonly name: string
  /** JavaScript. */
  readonly text: string
  readonly imports: Readonly<Record<string, string>>
}

const entry = new URL('./runtime/script-runtime.ts', import.meta.url).href

let modules: readonly RuntimeModule[] | undefined

export function legacyRealm(signatures: LegacySignatures): LegacyRealm {
  modules ??= readModules()
  return { modules, entry, signatures }
}

/** The entry and everything that it imports, read once. */
function readModules(): RuntimeModule[] {
  const found = new Map<string, RuntimeModule>()
  const queue = [entry]
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (found.has(name)) continue
    const text = stripTypeScriptTypes(readFileSync(fileURLToPath(name), 'utf8'))
    const imports = Object.fromEntries(
      importsOf(text).map((specifier) => [specifier, resolved(specifier, name ?? entry)]),
    )
    found.set(name, { name, text, imports })
    queue.push(...Object.values(imports))
  }
  return [...found.values()]
}

function importsOf(text: string): string[] {
  const { body } = parse(text, { ecmaVersion: 'latest', sourceType: 'module' })
  return body.flatMap((node) => {
    const isImport = node.type === 'ImportDeclaration' || node.type === 'ExportNamedDeclaration'
    return isImport && typeof node.source?.value === 'string' ? [node.source.value] : []
  })
}

const root = dirname(findPackageJSON(import.meta.url) ?? '')

/** `./x.ts` relative to the importer, or `#layer/x.ts`. */
const resolved = (specifier: string, from: string): string =>
  specifier.startsWith('#') ? pathToFileURL(join(root, 'src', specifier.slice(1))).href : new URL(specifier, from).href
