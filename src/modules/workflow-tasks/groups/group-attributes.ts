import type { Issues } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { renderTask } from '#modules/shared/tasks/task-template.ts'
import { list } from '#sdk/module/parameter-types.ts'
import type { Params } from '#sdk/module/params.ts'
import { noFlow, type TaskFlow } from '#sdk/workflow/flow.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'

/** One attribute of a group: a configured value, or the values of the workflow's user. */
interface GroupAttribute {
  readonly name: string
  readonly value: Template | undefined
}

export const attributesParameter = list({
  about:
    "`name=value`, where the value is a template, or the name of an attribute of the workflow's user; may be repeated. All attributes of the workflow's user when absent.",
})

/** Undefined if the parameter is absent. */
export function readGroupAttributes(params: Params, issues: Issues): readonly GroupAttribute[] | undefined {
  const given = params.values('attributes').filter((entry) => entry !== '')
  if (given.length === 0) return undefined
  return given.flatMap((entry, i): GroupAttribute[] => {
    const cut = entry.indexOf('=')
    if (cut === 0) issues.error(params.pathOf('attributes', i), `"${entry}" names no attribute`)
    if (cut < 0) return [{ name: entry, value: undefined }]
    try {
      const value = parseTemplate(entry.slice(cut + 1), { keys: true, attributes: true })
      return [{ name: entry.slice(0, cut), value }]
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      issues.error(params.pathOf('attributes', i), `"attributes": ${message}`)
      return []
    }
  })
}

/** The attributes of the workflow's user that reach the group. */
export function groupFlow(target: string, attributes: readonly GroupAttribute[] | undefined): TaskFlow {
  const copied = attributes?.flatMap(({ name, value }) => (value === undefined ? [name] : []))
  const rendered = attributes?.flatMap(({ value }) => value?.attributes ?? []) ?? []
  return { ...noFlow, mayRead: rendered, writesGroup: { target, attributes: copied } }
}

/** The group's new attributes; an attribute without values is removed. */
export function groupAttributes(
  attributes: readonly GroupAttribute[] | undefined,
  context: TaskContext,
): Record<string, readonly string[]> {
  const { user } = context
  const held = new Map<string, readonly string[]>()
  if (attributes === undefined) {
    for (const name of user.cleared ?? []) held.set(name, [])
    for (const [name, values] of user.attributes) held.set(name, values)
  }
  for (const { name, value } of attributes ?? []) {
    const rendered = value === undefined ? user.attributes.values(name) : [renderTask(value, context)]
    held.set(name, [...(held.get(name) ?? []), ...rendered.filter((text) => text !== '')])
  }
  return Object.fromEntries(held)
}
