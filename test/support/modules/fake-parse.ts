import { type Issue, Issues, type Path } from '#kernel/issues.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

export type ParamValues = Readonly<Record<string, string | readonly string[]>>

/** Parameters as in a YAML map; `params` is their position. */
export function fakeParams(given: ParamValues, secrets: readonly string[] = []): Params {
  const values = (name: string): readonly string[] => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined) return []
    return typeof value === 'string' ? [value] : value
  }
  return {
    names: () => Object.keys(given),
    values,
    pathOf: (name, index) => (index === undefined ? ['params', name] : ['params', name, index]),
    isSecret: (name) => secrets.includes(name),
  }
}

export interface Reference {
  readonly kind: string
  readonly name: string
  readonly path: Path
}

export interface FakeParseContext extends ParseContext {
  readonly references: Reference[]
}

export function fakeParseContext(folder = '/configuration'): FakeParseContext {
  const references: Reference[] = []
  return {
    references,
    refer: (kind, name, path) => void references.push({ kind, name, path }),
    mapper: () => undefined,
    folder,
  }
}

/** Issues as `level path: message`, in the order they were reported. */
export const issueTexts = (list: readonly Issue[]): string[] =>
  list.map(({ level, path, message }) => `${level} ${path.join('.')}: ${message}`)

/** A fresh list of issues. */
export const noIssues = (): Issues => new Issues()
