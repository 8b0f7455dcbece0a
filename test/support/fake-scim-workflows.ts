import { GatewayError } from '#kernel/errors.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { People } from '#testing/scim-gateway-fixture.ts'

/** Simulates the workflows of a SCIM tutorial, and records every call. */
export class FakeScimWorkflows {
  readonly calls: WorkflowCall[] = []
  readonly #people: People
  /** If given, runs instead of the effect. */
  override: ((call: WorkflowCall) => Promise<void>) | undefined
  /** Runs at the start of each run, to simulate concurrent changes. */
  before: ((call: WorkflowCall) => void) | undefined
  /** Runs for which the target is down. */
  failing: ((call: WorkflowCall) => boolean) | undefined

  constructor(people: People) {
    this.#people = people
  }

  async run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult> {
    this.calls.push(call)
    started?.('run')
    await new Promise((resolve) => setImmediate(resolve))
    this.before?.(call)
    if (this.failing?.(call) === true) throw new GatewayError('TARGET_UNREACHABLE', 'down')
    if (this.override === undefined) this.#effect(call)
    else await this.override(call)
    return { id: 'run', status: 'completed', changes: 1 }
  }

  #effect(call: WorkflowCall): void {
    const { name, user, params } = call
    const { people, memberships, groupFacts } = this.#people
    const known = people.get(user.userID.toLowerCase())
    if (call.basedOn !== undefined) requireVersion(known?.version, call.basedOn.version)
    if (name === 'sync-user') {
      if (known === undefined) this.#people.add(user.userID, user.attributes.toObject())
      else known.attributes = user.attributes.clone()
      if (known !== undefined) known.version++
    } else if (name === 'delete-user') {
      people.delete(user.userID.toLowerCase())
    } else if (name === 'change-members') {
      const members = memberships.get(params['groupname'] ?? '')
      if (params['removegroup'] === 'true') members?.delete(user.userID)
      else members?.add(user.userID)
      for (const changed of [known, groupFacts.get(params['groupname'] ?? '')]) if (changed) changed.version++
    } else if (name === 'create-group') {
      this.#createGroup(call)
    } else if (name === 'update-group') {
      this.#updateGroup(call)
    } else if (name === 'delete-group') {
      const group = params['groupname'] ?? ''
      requireVersion(groupFacts.get(group)?.version, params['groupversion'])
      memberships.delete(group)
      groupFacts.delete(group)
    } else {
      throw new GatewayError('NOT_SUPPORTED', `there is no workflow "${name}"`)
    }
  }

  #createGroup({ user, params }: WorkflowCall): void {
    const name = params['groupname'] ?? ''
    if (this.#people.groupNamed(name) !== undefined) throw new GatewayError('CONFLICT', `there is a group "${name}"`)
    this.#people.addGroup(name)
    const facts = this.#people.groupFacts.get(name)
    if (facts !== undefined) facts.attributes = user.attributes.clone()
  }

  #updateGroup({ user, params, cleared = [] }: WorkflowCall): void {
    const name = params['groupname'] ?? ''
    const facts = this.#people.groupFacts.get(name)
    if (facts === undefined) throw new GatewayError('NOT_FOUND', `no group "${name}"`)
    requireVersion(facts.version, params['groupversion'])
    for (const [attribute, values] of user.attributes) facts.attributes.set(attribute, values)
    for (const attribute of cleared) facts.attributes.delete(attribute)
    facts.version++
    this.#people.renameGroup(name, params['newgroupname'] ?? name)
  }
}

function requireVersion(version: number | undefined, wanted: string | undefined): void {
  if (wanted === undefined || wanted === String(version)) return
  throw new GatewayError('VERSION_MISMATCH', `version ${version} is not ${wanted}`)
}
