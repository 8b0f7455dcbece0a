import { paramsSchema, type SecretParamsSpec } from '#config/kinds/envelope.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ConfigDocument } from './config-document.ts'
import { readSchema } from './schema-issues.ts'
import type { SecretSource } from './secrets.ts'

interface Entry {
  readonly values: string[]
  readonly paths: Path[]
  readonly path: Path
  readonly secret: boolean
}

/** Builds Params one value at a time; values of a repeated name are joined. */
export class ParamsBuilder implements Params {
  readonly #entries = new Map<string, Entry>()
  readonly #base: Path

  constructor(base: Path) {
    this.#base = base
  }

  /** `path` is the place of the parameter, `valuePath` that of this value. */
  add(name: string, value: string, path: Path, valuePath: Path, secret = false): void {
    const entry = this.#entries.get(name) ?? { values: [], paths: [], path, secret }
    entry.values.push(value)
    entry.paths.push(valuePath)
    this.#entries.set(name, entry)
  }

  /** Records that the parameter exists without a value. */
  mention(name: string, path: Path): void {
    if (!this.#entries.has(name)) this.#entries.set(name, { values: [], paths: [], path, secret: false })
  }

  names(): Iterable<string> {
    return this.#entries.keys()
  }

  values(name: string): readonly string[] {
    return this.#entries.get(name)?.values ?? []
  }

  pathOf(name: string, index?: number): Path {
    const entry = this.#entries.get(name)
    if (entry === undefined) return [...this.#base, name]
    return (index === undefined ? undefined : entry.paths[index]) ?? entry.path
  }

  isSecret(name: string): boolean {
    return this.#entries.get(name)?.secret ?? false
  }
}

/** Parameters in either form; anything else is reported. */
export function readParams(value: unknown, path: Path, issues: Issues, document: ConfigDocument): ParamsBuilder {
  const params = new ParamsBuilder(path)
  const spec = value === undefined || value === null ? {} : readSchema(paramsSchema, value, path, issues)
  const add = (name: string, value: unknown, at: Path): void => {
    if (value === null || value === undefined)
      issues.warning(at, `"${name}" has no value; put one that begins with # in quotes`)
    addValue(params, name, value, at, document)
  }
  if (Array.isArray(spec)) {
    for (const [i, { name, value }] of spec.entries()) add(name, value, [...path, i, 'value'])
  } else {
    for (const [name, item] of Object.entries(spec ?? {})) add(name, item, [...path, name])
  }
  return params
}

function addValue(params: ParamsBuilder, name: string, value: unknown, path: Path, document: ConfigDocument): void {
  if (isForbiddenKey(name)) return
  if (Array.isArray(value)) {
    params.mention(name, path)
    for (const [i, item] of value.entries()) params.add(name, asText(item, [...path, i], document), path, [...path, i])
  } else if (value === undefined || value === null) {
    params.mention(name, path)
  } else {
    params.add(name, asText(value, path, document), path, path)
  }
}

/** Numbers and flags as they were written: `1.10` is not `1.1`. */
function asText(value: unknown, path: Path, document: ConfigDocument): string {
  return typeof value === 'string' ? value : (document.yaml.scalarText(path) ?? String(value))
}

/**
 * Secrets are parameters like the others, and are marked. A missing one is an error, or, with `tolerate`, a
 * warning: the parameter then has a placeholder value, and `tolerate` gets its place.
 */
export function addSecretParams(
  params: ParamsBuilder,
  spec: SecretParamsSpec | undefined,
  path: Path,
  secrets: SecretSource,
  issues: Issues,
  tolerate: ((path: Path) => void) | undefined,
): void {
  for (const [i, { name, secretName, secretKey }] of (spec ?? []).entries()) {
    const here = [...path, i]
    if (params.values(name).length > 0) {
      issues.error([...here, 'name'], `"${name}" is given twice`)
      continue
    }
    const answer = secrets.read(secretName, secretKey)
    if ('value' in answer) {
      params.add(name, answer.value, here, here, true)
      continue
    }
    if (answer.absent && tolerate !== undefined) {
      issues.warning([...here, 'secretName'], `${answer.problem}; without it, serve sets this object aside`)
      params.add(name, 'absent', here, here, true)
      tolerate(here)
    } else issues.error([...here, 'secretName'], answer.problem)
  }
}
