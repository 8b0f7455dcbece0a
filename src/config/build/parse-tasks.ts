import type { BuildContext } from '#config/context/build-context.ts'
import { readParams } from '#config/context/params.ts'
import { foundWords } from '#config/context/schema-issues.ts'
import { unknownClass, unknownTaskType } from '#config/context/unknown-class.ts'
import type { Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { parseTemplate } from '#kernel/template.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import type { PreparedTask, TaskModule, TaskParseContext } from '#sdk/workflow/workflow-task.ts'

const maxDepth = 20
const maxTasks = 1_000
const branchNames = ['onSuccess', 'onFailure'] as const
/** A field of every task. */
const timeoutField = 'timeoutSeconds'
const maxTimeoutSeconds = 86_400

/** The tasks of a workflow, in order. An invalid task is reported and left out. */
export function parseTasks(value: unknown, path: Path, context: BuildContext): PreparedTask[] {
  return new TaskParser(context).list(value, path, 0)
}

class TaskParser {
  readonly #build: BuildContext
  readonly #context: TaskParseContext
  #count = 0

  constructor(build: BuildContext) {
    this.#build = build
    this.#context = taskContext(build)
  }

  list(value: unknown, path: Path, depth: number): PreparedTask[] {
    const { issues } = this.#build
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) {
      issues.error(path, `expected a list of tasks, found ${foundWords(value)}`)
      return []
    }
    if (depth > maxDepth) {
      issues.error(path, `tasks are nested deeper than ${maxDepth}`)
      return []
    }
    return value.flatMap((item, i) => this.#task(item, [...path, i], depth) ?? [])
  }

  #task(value: unknown, path: Path, depth: number): PreparedTask | undefined {
    const { issues, state } = this.#build
    if (++this.#count > maxTasks) {
      if (this.#count === maxTasks + 1) issues.error(path, `a workflow has at most ${maxTasks} tasks`)
      return undefined
    }
    if (!isJsonObject(value)) {
      issues.error(path, `expected a task, found ${foundWords(value)}`)
      return undefined
    }
    const { taskType } = value
    if (typeof taskType !== 'string' || taskType === '') {
      const problem = taskType === undefined ? 'is required' : `expected text, found ${foundWords(taskType)}`
      issues.error([...path, 'taskType'], problem)
      return undefined
    }
    const module = state.catalog.tasks.get(taskType)
    if (module === undefined) {
      issues.error([...path, 'taskType'], unknownTaskType(taskType, state.catalog.tasks.keys()))
      return this.#unknownTask(taskType, value, path, depth)
    }
    return this.#known(module, value, path, depth)
  }

  #known(module: TaskModule, value: Readonly<Record<string, unknown>>, path: Path, depth: number): PreparedTask {
    const { issues } = this.#build
    const fields: Record<string, unknown> = {}
    const names = ['taskType', timeoutField, ...Object.keys(module.fields), ...(module.branches ? branchNames : [])]
    for (const [name, field] of Object.entries(value)) {
      if (Object.hasOwn(module.fields, name)) fields[name] = field
      else if (!names.includes(name)) issues.error([...path, name], unknownField(name, module, names))
    }
    const timeoutMillis = this.#timeout(value[timeoutField], path)
    return {
      taskType: module.taskType,
      path,
      details: detailsOf(fields),
      timeoutMillis,
      ...module.prepare(fields, path, issues, this.#context),
      ...this.#branches(module.branches ? value : {}, path, depth),
    }
  }

  #timeout(value: unknown, path: Path): number | undefined {
    if (value === undefined || value === null) return undefined
    const seconds = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
    if (Number.isInteger(seconds) && seconds >= 1 && seconds <= maxTimeoutSeconds) return seconds * 1000
    this.#build.issues.error(
      [...path, timeoutField],
      `"${timeoutField}" must be a whole number from 1 to ${maxTimeoutSeconds}`,
    )
    return undefined
  }

  /** Its subtasks are still read, so that their problems show; after it no attribute counts as missing. */
  #unknownTask(taskType: string, value: Readonly<Record<string, unknown>>, path: Path, depth: number): PreparedTask {
    return {
      taskType,
      path,
      flow: { ...noFlow, opaque: true },
      calls: [],
      ...this.#branches(value, path, depth),
      create: async () => {
        throw new Error(`no task type "${taskType}"`)
      },
    }
  }

  #branches(value: Readonly<Record<string, unknown>>, path: Path, depth: number) {
    return {
      onSuccess: this.list(value['onSuccess'], [...path, 'onSuccess'], depth + 1),
      onFailure: this.list(value['onFailure'], [...path, 'onFailure'], depth + 1),
    }
  }
}

/** The fields that tell tasks of one type apart. None is a value that the task writes, which may be a secret. */
const detailFields = ['label', 'name', 'target', 'className'] as const
const maxDetail = 200

const detailsOf = (fields: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    detailFields.flatMap((name) => {
      const value = fields[name]
      return typeof value === 'string' && value !== '' ? [[name, value.slice(0, maxDetail)]] : []
    }),
  )

function unknownField(name: string, module: TaskModule, names: readonly string[]): string {
  if ((branchNames as readonly string[]).includes(name)) return `"${module.taskType}" has no subtasks`
  return `unknown key "${name}"${suggestion(name, names)}`
}

function taskContext(build: BuildContext): TaskParseContext {
  const { customTasks } = build.state.catalog
  return {
    folder: build.folder,
    readFile: build.readFile,
    refer: (kind, name, path, absent) => build.refer(kind, name, path, absent),
    mapper: (expression, path, issues) => build.mapper(expression, path, issues),
    shownValue: (name) => build.shownValue(name),
    countScript: (unserved) => build.countScript(unserved),
    customTasks: {
      find: (className) => customTasks.find(className),
      unknown: (name) => unknownClass(customTasks, name),
    },
    params: (value, path, issues) => readParams(value, path, issues, build.document),
  }
}

const maxTextLength = 64 * 1024

/** Every `$name$` in the texts of a document, at any depth. */
export function templateKeysIn(document: unknown): ReadonlySet<string> {
  const names = new Set<string>()
  const pending: unknown[] = [document]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value === 'string') {
      for (const name of keysOf(value)) names.add(name)
    } else if (typeof value === 'object' && value !== null) {
      pending.push(...Object.values(value))
    }
  }
  return names
}

/** The first place of `$name$`; undefined if there is none. */
export function templateKeyPlace(document: unknown, name: string): Path | undefined {
  const pending: { readonly value: unknown; readonly path: Path }[] = [{ value: document, path: [] }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, path } = next
    if (typeof value === 'string' && keysOf(value).includes(name)) return path
    if (typeof value !== 'object' || value === null) continue
    const parts = Object.entries(value).map(([key, part]) => ({
      value: part,
      path: [...path, Array.isArray(value) ? Number(key) : key],
    }))
    pending.push(...parts.reverse())
  }
  return undefined
}

/** A text that is too long for a template is not one. */
const keysOf = (text: string): readonly string[] =>
  text.length > maxTextLength ? [] : parseTemplate(text, { keys: true, attributes: true }).keys
