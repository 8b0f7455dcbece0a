import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { JsonDocument, type MappedValue, type MappingSource } from '#identity/mapping/mapped-value.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { readPositional } from '#modules/shared/mappers/mapper-parameters.ts'
import type { MapperInstance } from '#sdk/mapper/mapper.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { LookupHost } from '#sdk/target/target.ts'
import { hasGroups, hasLookups, type LookupTarget } from '#sdk/target/target.ts'

const lookupsAtOnce = 8
/** The attribute of a group's entry that is its id, if the expression names none. */
const defaultGroupId = 'cn'
const anything: Filter = { kind: 'and', filters: [] }

interface Membership {
  readonly id: string
  readonly display: string
}

/** The `groups` of a SCIM user: id, address and name of each group, from the target or from the virtual directory. */
export default defineMapper({
  className: 'mappers.GenerateGroups',
  aliases: ['com.tremolosecurity.mappers.GenerateGroups'],
  prepare: (parameters, path, issues, context) => {
    switch (parameters[0]?.trim().toLowerCase()) {
      case 'false':
        return fromTarget(parameters, path, issues, context)
      case 'true':
        return fromDirectory(parameters, path, issues)
      default:
        issues.error(path, 'the first parameter must be "true" (groups from the directory) or "false" (from a target)')
        return undefined
    }
  },
})

function fromTarget(
  parameters: readonly string[],
  path: Path,
  issues: Issues,
  context: ParseContext,
): MapperInstance | undefined {
  const given = readPositional(['false', 'baseUrl', 'target'], parameters, path, issues)
  if (given === undefined) return undefined
  const [, baseUrl, name] = given
  context.refer('target', name, path)
  return {
    reads: [],
    create: (host) => ({
      map: (source) => {
        const target = host.targets.get(name)
        const hasOwnIds = hasLookups(target) && target.groupHasOwnId
        const { groups, groupIds } = source
        if (!hasOwnIds || groupIds !== undefined) {
          const ids = hasOwnIds ? groupIds : undefined
          return toGroups(
            groups.map((group, i) => ({ id: ids?.[i] ?? group, display: group })),
            baseUrl,
          )
        }
        return collect(source.groups, (group) => lookUp(target, group), baseUrl)
      },
    }),
  }
}

function fromDirectory(parameters: readonly string[], path: Path, issues: Issues): MapperInstance | undefined {
  const isShort = parameters.length >= 3 && parameters.slice(3).every((parameter) => parameter.trim() === '')
  const written = isShort ? [...parameters.slice(0, 3), defaultGroupId] : parameters
  const given = readPositional(['true', 'baseUrl', 'memberOfAttribute', 'groupIdAttribute'], written, path, issues)
  if (given === undefined) return undefined
  const [, baseUrl, memberOf, groupId] = given
  return {
    reads: [memberOf],
    create: (host) => ({
      map: (source: MappingSource) =>
        collect(source.values(memberOf), (name) => findEntry(host, name, groupId), baseUrl),
    }),
  }
}

/** Without the members if the target supports it: there may be very many. */
async function lookUp(target: LookupTarget, name: string): Promise<Membership | undefined> {
  const group = await (hasGroups(target) ? target.findGroup(name) : target.lookupGroupByName(name))
  return group && { id: group.id, display: group.name }
}

async function findEntry(host: LookupHost, name: string, groupId: string): Promise<Membership | undefined> {
  const dn = parseName(name)
  if (dn === undefined) return undefined
  const [entry] = await host.directory.search({ base: dn, scope: 'base', filter: anything, limit: 1 })
  const id = entry?.attributes.first(groupId)
  if (entry === undefined || id === undefined) return undefined
  return { id, display: entry.attributes.first('cn') ?? dn.rdns[0]?.[0]?.value ?? id }
}

/** The root and invalid names aren't groups. */
function parseName(text: string): Dn | undefined {
  try {
    const dn = Dn.parse(text)
    return dn.rdns.length === 0 ? undefined : dn
  } catch {
    return undefined
  }
}

/** In the given order, a few lookups at a time; missing groups are skipped. */
async function collect(
  names: readonly string[],
  find: (name: string) => Promise<Membership | undefined>,
  baseUrl: string,
): Promise<MappedValue> {
  const memberships: Membership[] = []
  for (let start = 0; start < names.length; start += lookupsAtOnce) {
    const found = await Promise.all(names.slice(start, start + lookupsAtOnce).map(find))
    for (const membership of found) if (membership !== undefined) memberships.push(membership)
  }
  return toGroups(memberships, baseUrl)
}

function toGroups(memberships: readonly Membership[], baseUrl: string): MappedValue {
  if (memberships.length === 0) return []
  const base = baseUrl.endsWith('/') ? baseUrl.slice(0, -1) : baseUrl
  return new JsonDocument(
    memberships.map(({ id, display }) => ({
      value: id,
      $ref: `${base}/Groups/${encodeURIComponent(id)}`,
      display,
    })),
  )
}
