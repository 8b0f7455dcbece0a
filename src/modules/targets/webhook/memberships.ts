import type { User } from '#identity/user.ts'
import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TargetRequest } from '#sdk/target.ts'
import { hasPlace } from './operation.ts'
import { refusedValue } from './refused-value.ts'
import { settled } from './settled.ts'
import type { WebhookApi } from './webhook-api.ts'

/** Memberships that are to change by requests of their own. */
export interface MembershipChange {
  /** Whether there are any. */
  readonly some: boolean
  apply(user: User): Promise<void>
}

const nothing: MembershipChange = { some: false, apply: async () => {} }

export class Memberships {
  readonly #api: WebhookApi

  constructor(api: WebhookApi) {
    this.#api = api
  }

  /**
   * Finds the groups, and changes nothing yet. Nothing is left to do where memberships go with the user. Throws
   * BAD_REQUEST for a group that is not there, and NOT_SUPPORTED where the API has no memberships.
   */
  async prepare(join: readonly string[], leave: readonly string[], request: TargetRequest): Promise<MembershipChange> {
    const { memberships } = this.#api.config.can
    const some = join.length + leave.length > 0
    if (!some || memberships === 'body') return nothing
    if (memberships === 'none') throw new GatewayError('NOT_SUPPORTED', 'the target has no requests for memberships')
    const joined = await this.#ids('addMember', join, request)
    const left = await this.#ids('removeMember', leave, request)
    return {
      some,
      apply: async (user) => {
        for (const [group, id] of joined) await this.#change('addMember', user, group, id, request)
        for (const [group, id] of left) await this.#change('removeMember', user, group, id, request)
      },
    }
  }

  /** Throws VERSION_MISMATCH when the group has another name by now, or is gone. */
  async requireGroup(expected: NamedGroup | undefined, request: TargetRequest): Promise<void> {
    if (expected === undefined || this.#api.config.group.id === undefined) return
    const found = await this.#api.findGroup(expected.name, request)
    if (found?.id === expected.id) return
    throw new GatewayError('VERSION_MISMATCH', `the group "${expected.name}" was renamed or deleted meanwhile`)
  }

  /** The groups' ids where the request needs them. A group to be left that is gone has been left. */
  async #ids(
    name: 'addMember' | 'removeMember',
    groups: readonly string[],
    request: TargetRequest,
  ): Promise<Map<string, string | undefined>> {
    const operation = this.#api.config.operations[name]
    const byId = operation !== undefined && hasPlace(operation, 'groupId')
    const ids = new Map<string, string | undefined>()
    for (const group of new Set(groups)) {
      const found = byId ? await this.#api.findGroup(group, request) : undefined
      if (byId && found === undefined && name === 'addMember') {
        throw refusedValue('groups', `names the group "${group}", which does not exist`)
      }
      if (!byId || found !== undefined) ids.set(group, found?.id)
    }
    return ids
  }

  async #change(
    name: 'addMember' | 'removeMember',
    user: User,
    group: string,
    groupId: string | undefined,
    request: TargetRequest,
  ): Promise<void> {
    const isJoin = name === 'addMember'
    const places = { userID: user.userID, id: user.id ?? user.userID, group, groupId }
    await settled(
      async () => {
        const found = await this.#api.write(name, places, { request })
        if (!found && isJoin) throw new GatewayError('NOT_FOUND', `no user "${user.userID}" or no group "${group}"`)
      },
      async () => {
        const now = await this.#api.findUser(user.userID, request)
        return now !== undefined && now.groups.includes(group) === isJoin
      },
    )
    request.audit({ subject: 'group', action: isJoin ? 'add' : 'delete', attribute: 'groups', value: group })
  }
}
