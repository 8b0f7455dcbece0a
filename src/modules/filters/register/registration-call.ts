import { Attributes } from '#identity/attributes.ts'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { RegisterSettings } from '#modules/filters/register/register-settings.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'

/** A registration that was found to be in order: all that its workflow needs, and nothing else. */
export interface Registration {
  /** Whom the workflow is about. */
  readonly userID: string
  readonly values: ReadonlyMap<string, string>
  /** Who asks for it. */
  readonly requestor: string
  readonly identity: Identity | undefined
  /** The requester was not signed in. */
  readonly anonymous: boolean
  readonly reason: string | undefined
  readonly password: string | undefined
  readonly invitation: string | undefined
}

export function workflowCall(
  { given }: RegisterSettings,
  { userID, values, requestor, identity, reason, password }: Registration,
  requestId: string,
): WorkflowCall {
  const attributes = Attributes.from([...values].map(([name, value]) => [name, [value]] as const))
  attributes.set(given.uidAttributeName, [userID])
  return {
    name: given.workflowName,
    requestor,
    ...(identity === undefined ? {} : { who: { requestor: identity } }),
    user: { userID, attributes, groups: [] },
    keepGroups: true,
    asynchronous: true,
    kept: true,
    requestId,
    params: {},
    ...(reason === undefined ? {} : { reason }),
    ...(password === undefined ? {} : { password }),
  }
}

/** As it is sealed until its mail is confirmed. */
export const toJson = ({
  values,
  userID,
  requestor,
  identity,
  anonymous,
  reason,
  password,
  invitation,
}: Registration): JsonObject => ({
  userID,
  requestor,
  ...(identity === undefined ? {} : { identity }),
  anonymous,
  values: Object.fromEntries(values),
  ...(reason === undefined ? {} : { reason }),
  ...(password === undefined ? {} : { password }),
  ...(invitation === undefined ? {} : { invitation }),
})

export function fromJson(data: JsonObject): Registration {
  const text = (name: string): string | undefined => {
    const value = data[name]
    return typeof value === 'string' ? value : undefined
  }
  const { values } = data
  const [userID, requestor, identity] = [text('userID'), text('requestor'), text('identity')]
  if (userID === undefined || requestor === undefined || !isJsonObject(values)) {
    throw new GatewayError('INTERNAL', 'a stored registration is not as it was stored')
  }
  const texts = Object.entries(values).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  )
  return {
    userID,
    requestor,
    identity: identity === undefined ? undefined : storedIdentity(identity),
    anonymous: data['anonymous'] === true,
    values: new Map(texts),
    reason: text('reason'),
    password: text('password'),
    invitation: text('invitation'),
  }
}
