import { isSecretAttribute } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { holdsNames } from '#identity/name-attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, withParameters } from '#sdk/module/parameters.ts'
import { defineDynamicWorkflow, type ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'

const parameters = {
  searchBase: parsed('distinguished name', Dn.parse, {
    about: 'The base of the search in the virtual directory.',
    required: true,
  }),
  searchFilter: parsed('filter', parseFilter, { about: 'Which entries, in RFC 4515.', required: true }),
  groupNameAttribute: text({ about: 'The attribute that becomes the parameter `groupName`.', required: true }),
  approverAttribute: text({ about: 'The attribute that becomes the parameter `approver`; empty without it.' }),
  descriptionAttribute: text({
    about: 'The attribute that becomes the parameter `descriptionAttribute`; empty without it.',
  }),
}

type Settings = ParsedParameters<typeof parameters>

const maxSets = 1_000

/** One row of a workflow for each entry of the directory, such as each group. */
export default defineDynamicWorkflow({
  className: 'dynamicWorkflows.Directory',
  aliases: ['com.tremolosecurity.provisioning.dynamicwf.LDAPDynaicWorkflows'],
  ...withParameters(parameters),
  create: (settings, host) => ({
    async parameterSets() {
      const { searchBase: base, searchFilter: filter } = settings
      if (base === undefined || filter === undefined) throw new Error('a search without a base or a filter')
      const found = await host.directory.search({ base, scope: 'sub', filter, limit: maxSets })
      // A directory returns at most this many at once, and a truncated list would look complete.
      if (found.length >= maxSets) {
        throw new GatewayError('TARGET_FAILED', `the search of "${host.name}" finds ${maxSets} entries and more`)
      }
      return found.map((entry) => toParameters(entry, settings))
    },
  }),
})

/** Templates can't use names with a dash, so it becomes `_`. Lists of members aren't parameters. */
function toParameters({ dn, attributes }: DirectoryEntry, settings: Settings): ParameterSet {
  const { groupNameAttribute, approverAttribute, descriptionAttribute } = settings
  const set: Record<string, string> = Object.create(null)
  for (const [name, [value = '']] of attributes) {
    const parameter = name.replaceAll('-', '_')
    if (holdsNames(name) || isSecretAttribute(name) || isEngineKey(parameter) || isForbiddenKey(parameter)) continue
    set[parameter] = value
  }
  const groupName = attributes.first(groupNameAttribute)
  if (groupName === undefined) throw new GatewayError('TARGET_FAILED', `${dn} has no "${groupNameAttribute}"`)
  const first = (name: string | undefined): string => (name === undefined ? '' : (attributes.first(name) ?? ''))
  return {
    ...set,
    groupName,
    approver: first(approverAttribute),
    descriptionAttribute: first(descriptionAttribute),
  }
}
