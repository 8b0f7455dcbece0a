import { pathKey } from '#protocols/scim/resource-schema.ts'
import { enterpriseUserSchema } from '#protocols/scim/standard-schemas.ts'
import { heldTime, type NameOf } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { Lookups } from './lookups.ts'

/** An attribute that this gateway neither shows nor filters by never has a value. */
export function userFilterNames({
  config,
  lookups,
}: {
  readonly config: GatewayConfig
  readonly lookups: Lookups
}): NameOf {
  const { filterNames, mapping } = config.users
  const shown = new Set(Array.from(config.scimPaths.values(), ({ attribute }) => attribute))
  if (!mapping.isEmpty) for (const { attribute } of mapping.shown) shown.add(attribute)
  return (path) => {
    const { attribute, extension } = path
    const internal = filterNames.get(pathKey(path))
    if (internal !== undefined) return [internal]
    if (extension === undefined && attribute.name === 'userName') return lookups.names.login
    if (extension === undefined && attribute.name === 'id') return lookups.names.userId
    // Read from the manager's own resource where they are shown, so the user's store doesn't know them.
    const isResolved = extension === enterpriseUserSchema.id && attribute.name === 'manager' && path.sub !== undefined
    if (isResolved && path.sub?.name !== 'value' && shown.has(attribute)) return undefined
    const held = mapping.held(path) ?? heldTime(path, lookups.servedTimes.users)
    if (held !== undefined) return held
    const own = attribute.name === 'meta' || attribute.name === 'schemas' || attribute.name === 'groups'
    return (extension === undefined && own) || shown.has(attribute) ? undefined : []
  }
}
