import { type ResolveFnOutput, registerHooks } from 'node:module'

const sources = new URL('..', import.meta.url).href

/** Libraries of many small files, all of them ES modules. */
const libraries = /\/node_modules\/(?:kysely\/dist\/esm|zod|jose\/dist\/webapi)\//

/**
 * When the gateway starts, its files and those of some libraries name each other thousands of times, and Node.js asks package.json and the
 * disk each time. Where such a file is follows from its name alone; to know it so takes a quarter off the time to start.
 */
export function findFilesByName(): void {
  const packages = new Map<string, ResolveFnOutput>()
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL = '' } = context
      const file = fileNamed(specifier, parentURL)
      if (file !== undefined) return { ...file, shortCircuit: true }
      // A package that is imported is the same one for all of our files.
      const isPackage = /^(?!node:)[a-z@]/.test(specifier) && context.conditions.includes('import')
      if (!isPackage || !parentURL.startsWith(sources)) return next(specifier, context)
      const found = packages.get(specifier) ?? { ...next(specifier, context), shortCircuit: true }
      packages.set(specifier, found)
      return found
    },
  })
}

/** Undefined for what has to be looked up. */
export function fileNamed(specifier: string, parentURL: string): { url: string; format: string } | undefined {
  if (specifier.endsWith('.ts') && parentURL.startsWith(sources)) {
    const url = specifier.startsWith('#') ? sources + specifier.slice(1) : new URL(specifier, parentURL).href
    return { url, format: 'module-typescript' }
  }
  if (/^\.\.?\/.*\.js$/.test(specifier) && libraries.test(parentURL)) {
    return { url: new URL(specifier, parentURL).href, format: 'module' }
  }
  return undefined
}
