import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import generateGroups from '#adapters/mappers/generate-groups/generate-groups.ts'
import type { ScimHost } from '#features/scim/host.ts'
import { Attributes } from '#identity/attributes.ts'
import { evaluate } from '#identity/filter/evaluate.ts'
import type { Group } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { Issues } from '#kernel/issues.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterModule } from '#sdk/filter/filter.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import type { ResourceType } from '#sdk/module/resource-type.ts'
import type { LookupTarget } from '#sdk/target/target.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'

interface Person {
  readonly id: string
  readonly login: string
  attributes: Attributes
  version: number
}

interface GroupFacts {
  readonly id: string
  attributes: Attributes
  version: number
}

/** Users and groups in memory, with the lookups of a target. Only FakeScimWorkflows writes to it. */
export class People implements LookupTarget {
  readonly groupMembersAreIds = false
  readonly userIdIsLogin: boolean
  readonly groupHasOwnId: boolean
  readonly idsAreUnique: boolean
  readonly people = new Map<string, Person>()
  readonly memberships = new Map<string, Set<string>>()
  /** Beside the members, by name. */
  readonly groupFacts = new Map<string, GroupFacts>()
  readonly keepsVersions: boolean
  readonly searches: SearchQuery[] = []
  givesPositions = true
  /** How often members of a group were read. */
  memberReads = 0
  #next = 1

  constructor(options: { ownIds: boolean; versions?: boolean } = { ownIds: false }) {
    this.userIdIsLogin = !options.ownIds
    this.groupHasOwnId = options.ownIds
    this.idsAreUnique = options.ownIds
    this.keepsVersions = options.versions ?? false
  }

  add(login: string, attributes: Readonly<Record<string, readonly string[]>> = {}): void {
    const person = {
      id: `id-${this.#next++}`,
      login,
      attributes: Attributes.from({ userName: [login], ...attributes }),
      version: 7,
    }
    this.people.set(login.toLowerCase(), person)
  }

  addGroup(name: string, ...members: string[]): void {
    this.memberships.set(name, new Set(members))
    this.groupFacts.set(name, { id: `gid-${name}`, attributes: new Attributes(), version: 1 })
  }

  /** The stored spelling of the group. */
  groupNamed(name: string): string | undefined {
    return [...this.memberships.keys()].find((known) => known.toLowerCase() === name.toLowerCase())
  }

  renameGroup(name: string, newName: string): void {
    if (name === newName) return
    for (const map of [this.memberships, this.groupFacts] as Map<string, unknown>[]) {
      const value = map.get(name)
      map.delete(name)
      map.set(newName, value)
    }
  }

  #user(person: Person | undefined): User | undefined {
    if (person === undefined) return undefined
    const { id, login, attributes, version } = person
    const groups = [...this.memberships].filter(([, members]) => members.has(login)).map(([name]) => name)
    const created = new Date('2026-01-02T03:04:05Z')
    return {
      userID: login,
      attributes: attributes.clone(),
      groups,
      created,
      version: String(version),
      ...(this.userIdIsLogin ? {} : { id }),
    }
  }

  #group(name: string | undefined, members = true): Group | undefined {
    const held = name === undefined ? undefined : this.memberships.get(name)
    if (name === undefined || held === undefined) return undefined
    if (members) this.memberReads++
    const facts = this.groupFacts.get(name)
    return {
      id: this.groupHasOwnId ? (facts?.id ?? '') : name,
      name,
      members: members ? [...held] : [],
      attributes: facts?.attributes.clone() ?? new Attributes(),
      ...(this.keepsVersions ? { version: String(facts?.version), created: new Date('2026-01-02T03:04:05Z') } : {}),
    }
  }

  async lookupUserByLogin(login: string) {
    return this.#user(this.people.get(login.toLowerCase()))
  }

  async lookupUserById(id: string) {
    const person = this.userIdIsLogin
      ? this.people.get(id.toLowerCase())
      : [...this.people.values()].find((candidate) => candidate.id === id)
    return this.#user(person)
  }

  async searchUsers(query: SearchQuery) {
    const users = [...this.people.values()].flatMap((person) => this.#user(person) ?? [])
    return this.#page(users, query, (user, name) => {
      if (name === 'userid') return [user.userID]
      return name === 'id' ? [user.id ?? user.userID] : user.attributes.values(name)
    })
  }

  async lookupGroupByName(name: string, options = { members: true }) {
    return this.#group(this.groupNamed(name), options.members)
  }

  async lookupGroupById(id: string, options = { members: true }) {
    const byId = [...this.groupFacts].find(([, facts]) => facts.id === id)?.[0]
    return this.#group(this.groupHasOwnId ? byId : this.groupNamed(id), options.members)
  }

  async searchGroups(query: SearchQuery) {
    const groups = [...this.memberships.keys()].flatMap((name) => this.#group(name, false) ?? [])
    return this.#page(groups, query, (group, name) =>
      name === 'name' ? [group.name] : name === 'id' ? [group.id] : (group.attributes?.values(name) ?? []),
    )
  }

  #page<T>(all: readonly T[], query: SearchQuery, read: (item: T, name: string) => readonly string[]): SearchPage<T> {
    this.searches.push(query)
    const { filter, offset, limit, sort, after } = query
    const matching = all.filter(
      (item) => filter === undefined || evaluate(filter, { values: (name) => read(item, name.toLowerCase()) }) === true,
    )
    if (sort !== undefined) {
      const sign = sort.descending ? -1 : 1
      const key = (item: T) => read(item, sort.attribute.toLowerCase())[0]?.toLowerCase() ?? '\uffff'
      matching.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0))
    }
    if (after !== undefined && !/^p\d+$/.test(after)) throw new GatewayError('BAD_REQUEST', 'no such position')
    const start = after === undefined ? offset : Number(after.slice(1))
    const end = start + limit
    const next = this.givesPositions && end < matching.length ? { next: `p${end}` } : {}
    return { items: matching.slice(start, end), total: matching.length, ...next }
  }

  findUser = never
  createUser = never
  syncUser = never
  deleteUser = never
}

const never = (): never => {
  throw new Error('the gateway must not write to a target')
}

/**
 * `part|attribute,name` reads one part of a complex attribute, as a JSON path would; `list|attribute` its values.
 * `groups|...` is mappers.GenerateGroups.
 */
const mapper: ParseContext['mapper'] = (expression, path, issues) => {
  const [kind, parameters = ''] = expression.split('|')
  if (kind === 'groups') return generateGroups.prepare(parameters.split(','), path, issues, fakeParseContext())
  const [attribute = '', part = 'value'] = parameters.split(',')
  return {
    reads: [attribute],
    parts: [part],
    create: () => ({
      map: (source) => {
        const value = source.json?.(attribute)
        const items = (kind === 'list' ? value : [value]) as readonly JsonObject[] | undefined
        return (items ?? []).flatMap((item) => (typeof item?.[part] === 'string' ? [item[part]] : []))
      },
    }),
  }
}

export const tutorialParams: ParamValues = {
  lookupFromLDAP: 'false',
  searchBase: '',
  lookupTarget: 'people',
  uidAttributeName: 'userName',
  lookupAttributeName: 'userName',
  workflowName: 'sync-user',
  deleteUserWorkflowName: 'delete-user',
  groupWorkflow: 'change-members',
  groupDeleteWorkflow: 'delete-group',
  groupLookupAttributeName: 'name',
  groupIdName: 'id',
  scim2tremolo: ['username', 'mail', 'first', 'last', 'enabled', 'secretNote'],
  'scim2tremolo.username.source': 'userName',
  'scim2tremolo.mail.source': 'list|emails,value',
  'scim2tremolo.mail.sourceType': 'custom',
  'scim2tremolo.first.source': 'part|name,givenName',
  'scim2tremolo.first.sourceType': 'custom',
  'scim2tremolo.last.source': 'part|name,familyName',
  'scim2tremolo.last.sourceType': 'custom',
  'scim2tremolo.enabled.source': 'active',
  'scim2tremolo.enabled.sourceType': 'user',
  'scim2tremolo.secretNote.source': 'nickName',
  tremolo2scim: ['userName', 'emails', 'name', 'active', 'displayName'],
  'tremolo2scim.userName.source': 'username',
  'tremolo2scim.emails.source': '[{"type":"work","primary":true,"value":"${mail}"}]',
  'tremolo2scim.emails.sourceType': 'composite',
  'tremolo2scim.name.source': '{"givenName":"${first}","familyName":"${last}"}',
  'tremolo2scim.name.sourceType': 'composite',
  'tremolo2scim.active.source': 'enabled',
  'tremolo2scim.displayName.source': '${first} ${last}',
  'tremolo2scim.displayName.sourceType': 'composite',
  userFilterScim2Ldap: 'emails.value=mail',
  groupFilterScim2Ldap: 'id=cn',
}

/** ResourceType objects by name. */
export type ResourceTypes = Readonly<Record<string, ResourceType>>

export function prepareGateway(module: FilterModule, params: ParamValues = tutorialParams, types: ResourceTypes = {}) {
  const issues = new Issues()
  const context = { ...fakeParseContext(), mapper, resourceType: (name: string) => types[name] }
  const prepared = module.prepare(fakeParams(params), issues, context)
  return { prepared, issues: issueTexts(issues.list), references: context.references }
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: JsonObject
}

type Headers = Readonly<Record<string, string>>

export type Send = (method: string, path: string, body?: JsonValue | string, headers?: Headers) => Promise<Answer>

export const base = 'https://gw.example.com/api/scim'

/** The gateway as a client sees it: its errors become answers in its own format, as in the pipeline. */
export async function openGateway(
  module: FilterModule,
  options: {
    params?: ParamValues
    types?: ResourceTypes
    people?: People
    host?: Partial<ScimHost>
    client?: string
    /** What dry runs show. */
    preview?: (call: WorkflowCall) => Promise<Preview>
  } = {},
) {
  const people = options.people ?? new People()
  const workflows = new FakeScimWorkflows(people)
  const { prepared, issues } = prepareGateway(module, options.params, options.types)
  if (issues.length > 0) throw new Error(issues.join('\n'))
  const starter = options.host?.workflows ?? workflows
  const runs = {
    run: (...call: Parameters<typeof starter.run>) => starter.run(...call),
    hasUnfinished: async () => false,
    isOpen: async () => false,
    preview: options.preview ?? (async () => somePreview),
  }
  const filter = await prepared.create({ ...fakeModuleHost({ targets: { people }, runs }), ...options.host })
  const exchanges: Exchange[] = []
  /** The answer as the server gets it, before a body that is read in parts is read. */
  const respond = async (method: string, path: string, body?: JsonValue | string, headers: Headers = {}) => {
    const content: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/scim+json' }
    const request = fakeRequest({
      method,
      url: base + path,
      headers: { ...content, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const exchange = {
      request,
      application: 'scim',
      mount: '/api/scim',
      pathInfo: request.path.slice('/api/scim'.length),
      subject: subject(`uid=${options.client ?? 'idp'},o=test`),
    }
    exchanges.push(exchange)
    return filter.handle(exchange, async () => never())
  }
  const send: Send = async (...call) => {
    try {
      const response = await respond(...call)
      const { body } = response
      return { ...response, body: JSON.parse(body instanceof Readable ? await text(body) : String(body ?? '{}')) }
    } catch (thrown) {
      const error = asGatewayError(thrown)
      const { headers: format, body } = prepared.errors(error, 'request-1')
      return { status: error.status, headers: { ...error.headers, ...format }, body: JSON.parse(String(body)) }
    }
  }
  return { send, respond, people, workflows, exchanges }
}

/** A step of each form. */
const somePreview: Preview = {
  whole: true,
  steps: [
    {
      kind: 'user',
      action: 'change',
      target: 'people',
      name: 'ada',
      attributes: [{ name: 'title', secret: false, before: [], after: ['Countess'] }],
      joins: ['crew'],
      leaves: [],
      cut: false,
    },
    { kind: 'end', target: 'people', of: 'group', name: 'crew', expires: new Date(0) },
    { kind: 'approval', label: 'Change it' },
    { kind: 'wait', until: new Date(0) },
    { kind: 'unforeseen', task: 'own' },
  ],
}

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
    const { workflow: name } = call.head
    const { user, params } = call
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
