import type { Issues, Path } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'

/**
 * Reads a task's own fields by its table. Missing required fields and wrong types are reported where they stand, and
 * read as empty. Numbers and booleans are accepted where text is meant, and the words "true" and "false" as booleans,
 * since YAML people write both.
 */
export class TaskFields {
  readonly #table: TaskModule['fields']
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #path: Path
  readonly #issues: Issues

  constructor(table: TaskModule['fields'], fields: Readonly<Record<string, unknown>>, path: Path, issues: Issues) {
    this.#table = table
    this.#fields = fields
    this.#path = path
    this.#issues = issues
  }

  pathOf(name: string): Path {
    return [...this.#path, name]
  }

  /** Undefined when absent or empty. */
  value(name: string): unknown {
    const value = Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
    if (value !== undefined && value !== null && value !== '') return value
    if (this.#table[name]?.required === true) this.#issues.error(this.pathOf(name), `"${name}" is required`)
    return undefined
  }

  text(name: string): string {
    const value = this.value(name)
    if (value === undefined) return ''
    const text = scalarText(value)
    if (text === undefined) this.#wrong(name, 'must be text')
    return text ?? ''
  }

  flag(name: string, fallback: boolean): boolean {
    const value = this.value(name)
    if (value === undefined) return fallback
    if (typeof value === 'boolean') return value
    const word = typeof value === 'string' ? value.toLowerCase() : ''
    if (word !== 'true' && word !== 'false') this.#wrong(name, 'must be true or false')
    return word === 'true'
  }

  list(name: string): readonly unknown[] {
    const value = this.value(name)
    if (value === undefined) return []
    if (Array.isArray(value)) return value
    this.#wrong(name, 'must be a list')
    return []
  }

  /** A list of texts, each with its place. */
  texts(name: string): { readonly text: string; readonly path: Path }[] {
    return this.list(name).flatMap((value, index) => {
      const path = [...this.pathOf(name), index]
      const text = scalarText(value)
      if (text !== undefined && text !== '') return [{ text, path }]
      this.#issues.error(path, `every entry of "${name}" must be text`)
      return []
    })
  }

  /** `$key$` and `${attribute}` are places for values. */
  template(name: string): Template {
    return this.#parse(name, true)
  }

  /** Only `$key$` is a place for a value, as in the name of an attribute. */
  nameTemplate(name: string): Template {
    return this.#parse(name, false)
  }

  #parse(name: string, attributes: boolean): Template {
    try {
      return parseTemplate(this.text(name), { keys: true, attributes })
    } catch (error) {
      this.#wrong(name, error instanceof Error ? error.message : String(error))
      return parseTemplate('', { keys: false, attributes: false })
    }
  }

  #wrong(name: string, message: string): void {
    this.#issues.error(this.pathOf(name), `"${name}" ${message}`)
  }
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}
