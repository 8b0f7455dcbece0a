import { GatewayError } from '#kernel/errors.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { ScimCall } from './scim-call.ts'
import type { UserEndpoint } from './user-endpoint.ts'

/** `/Me` (RFC 7644 3.11): the user whose login is the authenticated caller's, under the user's own address. */
export class MeEndpoint {
  readonly #parts: GatewayParts
  readonly #users: UserEndpoint

  constructor(parts: GatewayParts, users: UserEndpoint) {
    this.#parts = parts
    this.#users = users
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    return this.#users.get(await this.#own(call))
  }

  async replace(call: ScimCall): Promise<GatewayResponse> {
    return this.#users.replace(await this.#own(call))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    return this.#users.patch(await this.#own(call))
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    return this.#users.delete(await this.#own(call))
  }

  /** Throws NOT_FOUND when the caller is none of the users. */
  async #own(call: ScimCall): Promise<ScimCall> {
    const { uid } = call.exchange.subject
    const found = uid === '' ? undefined : await this.#parts.lookups.userByLogin(uid)
    if (found === undefined) {
      throw new GatewayError('NOT_FOUND', `no user ${JSON.stringify(uid)}`, {
        publicText: 'The caller does not match any user, so /Me is not available.',
      })
    }
    return { ...call, id: found.id }
  }
}
