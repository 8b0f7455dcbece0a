import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { ScimService } from './service-model.ts'

type Endpoint = '/Users' | '/Groups'

/** Parts of an address that mean something else than an id. */
const special: ReadonlySet<string> = new Set(['', '.', '..', '.search'])

/** The path of a resource; undefined for an id that none can have. */
export function resourcePath(endpoint: Endpoint, id: string): string | undefined {
  if (special.has(id.toLowerCase()) || !id.isWellFormed() || id.includes('\0') || id.length > 2000) return undefined
  return `${endpoint}/${encodeURIComponent(id)}`
}

/** Undefined when there is none. */
export async function resourceAt(
  { connection }: ScimService,
  endpoint: Endpoint,
  id: string,
  query: Readonly<Record<string, string>> = {},
): Promise<JsonObject | undefined> {
  const path = resourcePath(endpoint, id)
  if (path === undefined) return undefined
  try {
    return (await connection.call({ method: 'GET', path, query })).body
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

/** The path of a resource that the server itself has named. */
export function requiredPath({ name }: ScimService, endpoint: Endpoint, id: string): string {
  const path = resourcePath(endpoint, id)
  if (path === undefined) throw new GatewayError('TARGET_FAILED', `target "${name}" gave an id that is none`)
  return path
}
