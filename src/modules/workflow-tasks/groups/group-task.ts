import { GatewayError } from '#kernel/errors.ts'
import type { Issues } from '#kernel/issues.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { flag, list, text } from '#sdk/module/parameter-types.ts'
import type { Params } from '#sdk/module/params.ts'
import { type GroupTarget, hasGroups, type Target } from '#sdk/target/target.ts'
import { noVersion } from '#sdk/workflow/workflow.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'

/** The key under which the caller passes the version that the group must have. */
const versionKey = 'groupversion'

export const targetParameter = text({
  about: 'The target that owns the group.',
  required: true,
  reference: 'target',
})

export const namesParameter = list({
  about: 'The group; a template, may be repeated.',
  requirement: 'no, `$groupname$`',
})

export const checkVersionParameter = flag({
  about:
    '`"false"` ignores the version that the caller named in `groupversion`, for a target other than the one it was read from.',
  fallback: true,
})

/** The templates of a parameter; the fallback if it is absent. Invalid ones are reported. */
export function readTemplates(params: Params, name: string, fallback: readonly string[], issues: Issues): Template[] {
  const given = params.values(name).filter((value) => value !== '')
  return (given.length === 0 ? fallback : given).flatMap((value, i) => {
    try {
      return [parseTemplate(value, { keys: true, attributes: true })]
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      issues.error(params.pathOf(name, i), `"${name}": ${message}`)
      return []
    }
  })
}

/** Throws NOT_SUPPORTED for a target that has no groups of its own. */
export function groupTarget(target: Target, name: string): GroupTarget {
  if (hasGroups(target)) return target
  throw new GatewayError('NOT_SUPPORTED', `target "${name}" does not make, change or delete groups`)
}

/** The version that the caller named, for the first write that requests it. */
export function takeGroupVersion({ request }: TaskContext): { readonly expectedVersion?: string } {
  const version = request.get(versionKey)
  request.delete(versionKey)
  return typeof version === 'string' && version !== '' ? { expectedVersion: version } : {}
}

/** Whether the caller found no such group (an empty `groupversion`), for the first creation that requests it. */
export function takesNoGroup({ request }: TaskContext): boolean {
  const isNew = request.get(versionKey) === noVersion
  request.delete(versionKey)
  return isNew
}
