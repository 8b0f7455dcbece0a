import { ArrayList } from './collections.ts'
import { HashMap } from './hash-map.ts'
import { askGateway } from './host-bridge.ts'
import { Attribute } from './identity.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { javaText, javaValue, optionalText } from './java-value.ts'

/** com.tremolosecurity.provisioning.core.ProvisioningParams. */
export const ProvisioningParams = {
  UNISON_EXEC_TYPE: 'UNISON.EXEC.TYPE',
  UNISON_EXEC_ASYNC: 'UNISON.EXEC.ASYNC',
  UNISON_EXEC_SYNC: 'UNISON.EXEC.SYNC',
}

/** com.tremolosecurity.provisioning.service.util.TremoloUser: the user of a workflow that a script starts. */
export class TremoloUser {
  #uid: string | null = null
  readonly #attributes = new ArrayList()
  readonly #groups = new ArrayList()

  getUid(): string | null {
    return this.#uid
  }

  setUid(uid: unknown): void {
    this.#uid = optionalText(uid)
  }

  /** Of `Attribute`. */
  getAttributes(): ArrayList {
    return this.#attributes
  }

  getGroups(): ArrayList {
    return this.#groups
  }
}

/** com.tremolosecurity.provisioning.service.util.WFCall. */
export class WFCall {
  #user: TremoloUser | null = null
  #requester: string | null = null
  #reason: string | null = null
  #uidAttributeName: string | null = null
  readonly #params = new HashMap()

  getUser(): TremoloUser | null {
    return this.#user
  }

  setUser(user: unknown): void {
    const plain = javaValue(user)
    if (plain !== null && !(plain instanceof TremoloUser)) throw new IllegalArgumentException('a TremoloUser is needed')
    this.#user = plain as TremoloUser | null
  }

  getRequestor(): string | null {
    return this.#requester
  }

  setRequestor(requester: unknown): void {
    this.#requester = optionalText(requester)
  }

  getReason(): string | null {
    return this.#reason
  }

  setReason(reason: unknown): void {
    this.#reason = optionalText(reason)
  }

  getUidAttributeName(): string | null {
    return this.#uidAttributeName
  }

  setUidAttributeName(name: unknown): void {
    this.#uidAttributeName = optionalText(name)
  }

  getRequestParams(): HashMap {
    return this.#params
  }
}

/** The gateway starts it when the task is done. */
export function startWorkflow(name: string, call: unknown): void {
  if (!(call instanceof WFCall)) throw new IllegalArgumentException('a WFCall is needed')
  const user = call.getUser()
  if (user === null) throw new IllegalArgumentException('the WFCall has no user')
  const attributes: Record<string, string[]> = Object.create(null)
  for (const attribute of user.getAttributes().toArray()) {
    if (!(attribute instanceof Attribute)) throw new IllegalArgumentException('an Attribute is needed')
    attributes[attribute.getName()] = attribute.getValues().toArray().map(javaText)
  }
  const params: Record<string, string> = Object.create(null)
  for (const [key, value] of call.getRequestParams()) {
    if (javaValue(value) !== null) params[javaText(key)] = javaText(value)
  }
  askGateway('startWorkflow', {
    workflow: name,
    userID: user.getUid() ?? attributes[call.getUidAttributeName() ?? '']?.[0] ?? '',
    attributes,
    groups: user.getGroups().toArray().map(javaText),
    params,
    requestor: call.getRequestor(),
    reason: call.getReason() ?? '',
  })
}
