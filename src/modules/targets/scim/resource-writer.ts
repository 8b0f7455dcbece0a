import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { ScimRequest } from '#protocols/scim/client/scim-connection.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { internalName, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { TargetRequest } from '#sdk/target.ts'
import { applyEdits, type Edit } from './resource-mapping.ts'
import type { ScimService, ServiceModel } from './service-model.ts'
import type { Stored } from './stored-resource.ts'

export const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

/** `userName`, `displayName`: what a resource is called by. */
export interface Naming {
  readonly attribute: 'userName' | 'displayName'
  /** Undefined leaves it. */
  readonly value: string | undefined
}

/** The body of a resource that does not exist yet. */
export function newResource(schema: ResourceSchema, naming: Naming, edits: readonly Edit[]): ScimResource {
  const resource = applyEdits({ [naming.attribute]: naming.value ?? '' }, edits)
  const extensions = schema.extensions.filter(({ id }) => resource[id] !== undefined).map(({ id }) => id)
  return { schemas: [schema.core.id, ...extensions], ...resource }
}

/**
 * The request by which a resource takes the edits: a PATCH of just these, or the whole resource anew where the server
 * has no PATCH. It is bound to the version that was read, where the server keeps versions.
 */
export function changeRequest(
  stored: Stored<{ readonly version?: string }>,
  naming: Naming,
  edits: readonly Edit[],
  { path, model, schema }: { readonly path: string; readonly model: ServiceModel; readonly schema: ResourceSchema },
): ScimRequest {
  const { version: ifMatch } = stored.entry
  if (!model.features.patch) {
    return { method: 'PUT', path, ifMatch, body: replaced(stored.raw, naming, edits, schema) }
  }
  const Operations: JsonValue[] = [
    ...(naming.value === undefined ? [] : [{ op: 'replace', path: naming.attribute, value: naming.value }]),
    ...edits.map((edit) => operation(edit)),
  ]
  return { method: 'PATCH', path, ifMatch, body: { schemas: [patchSchema], Operations } }
}

function operation({ path, value, isNew }: Edit): JsonObject {
  const name = internalName(path)
  return value === undefined ? { op: 'remove', path: name } : { op: isNew ? 'add' : 'replace', path: name, value }
}

/** Attributes that no schema here knows stay as they are; those that the server makes itself are left out. */
function replaced(raw: JsonObject, naming: Naming, edits: readonly Edit[], schema: ResourceSchema): ScimResource {
  const resource: ScimResource = {}
  for (const [name, value] of Object.entries(raw)) {
    const resolved = schema.resolve(name, true)
    if (resolved?.kind === 'attribute' && resolved.attribute.mutability === 'readOnly') continue
    const spelled = resolved?.kind === 'attribute' ? resolved.attribute.name : (resolved?.extension ?? name)
    resource[spelled] = isJsonObject(value) && resolved?.kind === 'schema' ? { ...value } : value
  }
  if (naming.value !== undefined) resource[naming.attribute] = naming.value
  return { ...applyEdits(resource, edits), schemas: schemasOf(raw, resource, schema), id: raw['id'] ?? null }
}

function schemasOf(raw: JsonObject, resource: ScimResource, schema: ResourceSchema): string[] {
  const told = Array.isArray(raw['schemas']) ? raw['schemas'].filter((uri) => typeof uri === 'string') : []
  const held = schema.extensions.filter(({ id }) => resource[id] !== undefined).map(({ id }) => id)
  return [...new Set([schema.core.id, ...told, ...held])]
}

/** Sends a change, and gives the resource where the server answers with it. */
export async function send(
  { connection }: ScimService,
  request: ScimRequest,
  { signal }: Pick<TargetRequest, 'signal'>,
): Promise<JsonObject | undefined> {
  return (await connection.call({ ...request, signal })).body
}

/** Nobody knows what came of the call, or it came to nothing; reading again will tell. */
export const isUncertain = (error: unknown): boolean =>
  error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE'

export const hasCode = (error: unknown, code: GatewayError['code']): boolean =>
  error instanceof GatewayError && error.code === code
