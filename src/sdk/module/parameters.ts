import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext, ReferenceKind } from '#sdk/module/parse-context.ts'

export interface ParameterOptions {
  /** One sentence for the reference page. */
  readonly about: string
  readonly required?: boolean
  /** Its value is never logged or shown. */
  readonly secret?: boolean
  /** The value names an object of this kind, which must exist. */
  readonly reference?: ReferenceKind
  /** What a reference to nothing is; an error unless said otherwise. */
  readonly absentReference?: 'error' | 'warning'
}

/** One row of a module's parameter table: what it means, and how its values are read. */
export interface Parameter<T> extends ParameterOptions {
  /** As the reference page names it: text, flag, number, list, one of a, b. */
  readonly type: string
  readonly many: boolean
  readonly fallback: T
  /** Reads non-empty values; `report` files an issue at the n-th of them. */
  read(values: readonly string[], report: (message: string, index?: number) => void): T
}

/** Keys are parameter names; a name such as `map.<attribute>.source` stands for every parameter of that form. */
export type ParameterTable = Readonly<Record<string, Parameter<unknown>>>

type ValueOf<P> = P extends Parameter<infer T> ? T : never
type IsForm<K> = K extends `${string}<${string}>${string}` ? true : false

export type ParsedParameters<T extends ParameterTable> = {
  readonly [K in keyof T]: IsForm<K> extends true ? ReadonlyMap<string, ValueOf<T[K]>> : ValueOf<T[K]>
}

/**
 * Reads a module's parameters by its table: unknown names, missing required ones, several values where one is meant,
 * values that do not read, and references are all reported. What could not be read is the row's fallback.
 * An empty text counts as absent, since existing YAML writes `""` for "none".
 */
export function readParameters<T extends ParameterTable>(
  table: T,
  params: Params,
  issues: Issues,
  context: ParseContext,
): ParsedParameters<T> {
  const rows = Object.entries(table)
  const forms = rows.flatMap(([name, row]) => (name.includes('<') ? [{ name, row, pattern: formPattern(name) }] : []))
  const result: Record<string, unknown> = Object.create(null)
  for (const [name, row] of rows) {
    if (name.includes('<')) result[name] = new Map<string, unknown>()
    else result[name] = readOne(name, row, params, issues, context)
  }
  for (const name of params.names()) {
    if (Object.hasOwn(table, name)) continue
    const form = forms.find((candidate) => candidate.pattern.test(name))
    if (form === undefined) {
      issues.error(params.pathOf(name), `unknown parameter "${name}"${suggestion(name, Object.keys(table))}`)
      continue
    }
    const variable = form.pattern.exec(name)?.[1] ?? name
    const map = result[form.name] as Map<string, unknown>
    map.set(variable, readOne(name, form.row, params, issues, context))
  }
  return result as ParsedParameters<T>
}

function readOne<V>(name: string, row: Parameter<V>, params: Params, issues: Issues, context: ParseContext): V {
  const values = params.values(name).filter((value) => value !== '')
  if (values.length === 0) {
    if (row.required === true) issues.error(params.pathOf(name), `parameter "${name}" is required`)
    return row.fallback
  }
  if (values.length > 1 && !row.many) {
    issues.error(params.pathOf(name), `parameter "${name}" takes one value, not ${values.length}`)
    return row.fallback
  }
  const isSecret = row.secret === true || params.isSecret(name)
  if (row.reference !== undefined && isSecret) {
    issues.error(params.pathOf(name), `parameter "${name}" names another object, so it cannot be a secret`)
  } else if (row.reference !== undefined) {
    for (const [i, value] of values.entries()) {
      context.refer(row.reference, value, params.pathOf(name, i), row.absentReference)
    }
  }
  return row.read(values, (message, index = 0) => {
    const shown = isSecret ? `the secret is not a ${row.type} that can be used` : message
    issues.error(params.pathOf(name, index), `"${name}": ${shown}`)
  })
}

function formPattern(name: string): RegExp {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/<[^>]+>/, '(.+)')
  return new RegExp(`^${escaped}$`)
}
