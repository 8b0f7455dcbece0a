import { pathKey } from '#protocols/scim/path-key.ts'
import { heldTime, type NameOf } from './filter-translation.ts'
import type { GatewayParts } from './gateway-parts.ts'

/** An attribute that this gateway neither shows nor filters by never has a value. */
export function userFilterNames({ config, lookups }: GatewayParts): NameOf {
  const { filterNames, mapping } = config.users
  const shown = new Set(Array.from(config.scimPaths.values(), ({ attribute }) => attribute))
  if (!mapping.isEmpty) for (const { attribute } of mapping.shown) shown.add(attribute)
  return (path) => {
    const { attribute, extension } = path
    const internal = filterNames.get(pathKey(path))
    if (internal !== undefined) return [internal]
    if (extension === undefined && attribute.name === 'userName') return lookups.names.login
    if (extension === undefined && attribute.name === 'id') return lookups.names.userId
    const held = mapping.held(path) ?? heldTime(path, lookups.servedTimes.users)
    if (held !== undefined) return held
    const own = attribute.name === 'meta' || attribute.name === 'schemas' || attribute.name === 'groups'
    return (extension === undefined && own) || shown.has(attribute) ? undefined : []
  }
}
