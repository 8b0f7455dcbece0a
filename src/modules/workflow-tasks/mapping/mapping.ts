import { Attributes } from '#identity/attributes.ts'
import { userIdName, userSource } from '#identity/mapping/mapped-value.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { suggestion } from '#kernel/suggest.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { type MappingRule, prepareMapping, sourceTypes } from '#sdk/mapper/mapping.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'
import { assignMapped, copyUser } from '#sdk/workflow/workflow-user.ts'

const fields = {
  map: {
    about:
      'The rules, each with `targetAttributeName`, `sourceType` (user, static, composite, custom) and `targetAttributeSource`.',
    required: true,
  },
  strict: {
    about: '`true`, also when absent: subtasks see only the mapped attributes; `false`: also those of the user.',
    required: false,
  },
} as const

const ruleFields = {
  targetAttributeName: { about: 'The attribute that is produced; `TREMOLO_USER_ID` is the login.', required: true },
  sourceType: { about: 'user, static, composite or custom.', required: true },
  targetAttributeSource: { about: 'Where the value comes from.', required: true },
} as const

const mapping: TaskModule = {
  taskType: 'mapping',
  fields,
  branches: true,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const strict = read.flag('strict', true)
    const rules = read.list('map').flatMap((rule, index) => readRule(rule, [...read.pathOf('map'), index], issues))
    const prepared = prepareMapping(rules, issues, context)
    return {
      calls: [],
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
}

export default mapping

function readRule(rule: unknown, path: Path, issues: Issues): MappingRule[] {
  if (!isJsonObject(rule)) {
    issues.error(path, 'a mapping rule is a map of targetAttributeName, sourceType and targetAttributeSource')
    return []
  }
  for (const name of Object.keys(rule)) {
    if (Object.hasOwn(ruleFields, name)) continue
    issues.error([...path, name], `unknown key "${name}"${suggestion(name, Object.keys(ruleFields))}`)
  }
  const read = new TaskFields(ruleFields, rule, path, issues)
  const attribute = read.text('targetAttributeName')
  const word = read.text('sourceType')
  const source = read.text('targetAttributeSource')
  const sourceType = sourceTypes.find((known) => known === word)
  if (word !== '' && sourceType === undefined) {
    issues.error(read.pathOf('sourceType'), `"sourceType" must be one of ${sourceTypes.join(', ')}, not "${word}"`)
  }
  if (attribute === '' || sourceType === undefined || source === '') return []
  return [{ attribute, sourceType, source, path: read.pathOf('targetAttributeSource') }]
}
