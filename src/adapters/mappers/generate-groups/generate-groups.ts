import { readPositional } from '#adapters/mappers/shared/mapper-parameters.ts'
import type { NamedGroup } from '#identity/group.ts'
import { JsonDocument, type MappedValue, type MappingSource } from '#identity/mapping/mapped-value.ts'
import { andThen } from '#kernel/awaitable.ts'
import { resourceAddress } from '#protocols/scim/resource-address.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'

/** The `groups` of a SCIM user: id, address and name of each group, as the gateway shows them. */
export default defineMapper({
  className: 'mappers.GenerateGroups',
  aliases: ['com.tremolosecurity.mappers.GenerateGroups'],
  prepare: (parameters, path, issues, context) => {
    const flag = parameters[0]?.trim().toLowerCase()
    if (flag !== 'true' && flag !== 'false') {
      issues.error(path, 'the first parameter must be "true" (groups from the directory) or "false" (from a target)')
      return undefined
    }
    const namesAttribute = flag === 'true' && parameters.slice(3).some((parameter) => parameter.trim() !== '')
    const names = namesAttribute
      ? ([flag, 'baseUrl', 'memberOfAttribute', 'groupIdAttribute'] as const)
      : ([flag, 'baseUrl', 'target'] as const)
    const given = readPositional(names, parameters, path, issues)
    if (given === undefined) return undefined
    const [, baseUrl, third] = given
    if (!namesAttribute) context.refer('target', third, path)
    const base = baseUrl.endsWith('/') ? baseUrl.slice(0, -1) : baseUrl
    return {
      reads: namesAttribute ? [third] : [],
      create: () => ({
        map: (source) =>
          andThen(groupsOf(source, namesAttribute ? third : undefined), (groups) => toGroups(groups, base)),
      }),
    }
  },
})

/** Outside of a gateway, groups are known by their names. */
const groupsOf = (source: MappingSource, memberOf: string | undefined) =>
  source.memberships?.(memberOf === undefined ? undefined : source.values(memberOf)) ??
  source.groups.map((name): NamedGroup => ({ id: name, name }))

const toGroups = (groups: readonly NamedGroup[], base: string): MappedValue =>
  groups.length === 0
    ? []
    : new JsonDocument(
        groups.map(({ id, name }) => ({ value: id, $ref: resourceAddress(base, 'Group', id), display: name })),
      )
