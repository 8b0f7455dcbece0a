import { defineTask } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { Attributes } from '#identity/attributes.ts'
import { userIdName, userSource } from '#identity/mapping/mapped-value.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { type MappingRule, prepareMapping, sourceTypes } from '#sdk/mapper/mapping.ts'
import { anything, flag, text } from '#sdk/module/parameter-types.ts'
import { readFields } from '#sdk/module/parameters.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { TaskParseContext } from '#sdk/workflow/workflow-task.ts'
import { assignMapped, copyUser } from '#sdk/workflow/workflow-user.ts'

const fields = {
  map: anything({
    about:
      'The rules, each with `targetAttributeName`, `sourceType` (user, static, composite, custom) and `targetAttributeSource`.',
    required: true,
  }),
  strict: flag({
    about: '`true`, also when absent: subtasks see only the mapped attributes; `false`: also those of the user.',
    fallback: true,
  }),
}

const ruleFields = {
  targetAttributeName: text({
    about: 'The attribute that is produced; `TREMOLO_USER_ID` is the login.',
    required: true,
  }),
  sourceType: text({ about: 'user, static, composite or custom.', required: true }),
  targetAttributeSource: text({ about: 'Where the value comes from.', required: true }),
}

export default defineTask({
  taskType: 'mapping',
  fields,
  branches: true,
  prepare: ({ map, strict }, { issues, context, pathOf }) => {
    if (map !== undefined && !Array.isArray(map)) issues.error(pathOf('map'), '"map" must be a list')
    const written: readonly unknown[] = Array.isArray(map) ? map : []
    const rules = written.flatMap((rule, index) => readRule(rule, [...pathOf('map'), index], issues, context))
    const prepared = prepareMapping(rules, issues, context)
    return {
      flow: {
        reads: prepared.reads,
        produces: prepared.produces.filter(({ attribute }) => attribute !== userIdName),
        dropsOthers: strict,
        opaque: false,
        loginReads: prepared.loginReads ?? 'any',
        sources: prepared.sources,
        ...(prepared.opaque ? { mayRead: 'any' } : {}),
      },
      create: async (host) => {
        const live = await prepared.create(host)
        const task = onContext(async ({ user }) => {
          const mapped = await live.apply(userSource(user))
          const copy = strict ? { ...copyUser(user), attributes: new Attributes() } : copyUser(user)
          assignMapped(copy, mapped)
          if (user.cleared !== undefined) {
            copy.cleared = [...(strict ? [] : user.cleared), ...live.dependents(user.cleared)]
          }
          return { kind: 'branch', branch: 'onSuccess', user: copy }
        })
        return { ...task, close: () => live.close?.() }
      },
    }
  },
})

function readRule(rule: unknown, path: Path, issues: Issues, context: TaskParseContext): MappingRule[] {
  if (!isJsonObject(rule)) {
    issues.error(path, 'a mapping rule is a map of targetAttributeName, sourceType and targetAttributeSource')
    return []
  }
  for (const name of Object.keys(rule)) {
    if (Object.hasOwn(ruleFields, name)) continue
    issues.error([...path, name], `unknown key "${name}"${suggestion(name, Object.keys(ruleFields))}`)
  }
  const read = readFields(ruleFields, rule, path, issues, context)
  const { targetAttributeName: attribute, sourceType: word, targetAttributeSource: source } = read
  const sourceType = sourceTypes.find((known) => known === word)
  if (word !== '' && sourceType === undefined) {
    issues.error([...path, 'sourceType'], `"sourceType" must be one of ${sourceTypes.join(', ')}, not "${word}"`)
  }
  if (attribute === '' || sourceType === undefined || source === '') return []
  return [{ attribute, sourceType, source, path: [...path, 'targetAttributeSource'] }]
}
