import { Attributes } from '#identity/attributes.ts'
import type { Directory } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { entryChange, newGroupChanges } from '#identity/entry-changes.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { shownAttributes } from '#identity/shown-attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import { externalKey, type GroupMapping, type GroupMappings } from '#sdk/target/group-mappings.ts'
import { type ClusterCall, type ClusterCalls, isCluster } from '#sdk/target/kubernetes-cluster.ts'
import { hasQueries } from '#sdk/target/query-target.ts'
import {
  type GroupTarget,
  hasGroups,
  type Target,
  type TargetChange,
  type TargetRequest,
  type TargetSource,
} from '#sdk/target/target.ts'
import type { ScriptSecrets } from '#sdk/workflow/script-secrets.ts'
import { type CallHead, isEngineKey, type WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { TaskContext } from '#sdk/workflow/workflow-task.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { PluginAnswerReader } from './plugin-answer.ts'

/** What scripts written for OpenUnison can ask the gateway for, if the host of their slot has it. */
export interface ScriptReach {
  readonly targets: TargetSource
  readonly directory: Pick<Directory, 'search'>
  readonly groupMappings: GroupMappings
  readonly scriptSecrets: ScriptSecrets
}

/** The step of a workflow: only there may a script write, since only there a change is audited. */
export interface ScriptStep {
  readonly context: Pick<TaskContext, 'forTarget' | 'effects' | 'run' | 'user' | 'bound'>
  /** The workflows that the script may start. */
  readonly workflows: readonly string[]
}

/** The run of a scheduled job: it starts workflows, which make the changes. */
export interface ScriptJob {
  readonly workflows: readonly string[]
  start(call: ScriptCall): void
}

/** A workflow that a script starts. */
export type ScriptCall = Pick<WorkflowCall, 'user' | 'keepGroups' | 'params'> & {
  readonly head: Pick<CallHead, 'workflow' | 'reason'>
}

/** How many entries a search returns; more are an error, because the script could not see that some are missing. */
const maxEntries = 1000

/** How long a text may be that a script encrypts. */
const maxSecretLength = 100_000
/** How many rows a statement returns. Each login may read the names of all groups. */
const maxRows = 20_000

/** Answers one request of a script. Throws NOT_SUPPORTED if scripts of this kind may not do it. */
export const scriptServices =
  (reach: Partial<ScriptReach>, step?: ScriptStep, job?: ScriptJob) =>
  async (request: JsonValue): Promise<JsonValue> => {
    const asked = isJsonObject(request) ? request : {}
    const { service } = asked
    const answer = typeof service === 'string' && Object.hasOwn(services, service) ? services[service] : undefined
    if (answer === undefined) throw new GatewayError('NOT_SUPPORTED', `scripts cannot ask for ${String(service)}`)
    return answer(new ScriptQuestion(asked), reach, step, job)
  }

class ScriptQuestion {
  readonly #asked: JsonObject

  constructor(asked: JsonObject) {
    this.#asked = asked
  }

  text(name: string): string {
    const value = this.#asked[name]
    if (typeof value === 'string') return value
    throw new GatewayError('BAD_REQUEST', `"${name}" must be a text`)
  }

  optionalText<const N extends string>(name: N): { readonly [K in N]?: string } {
    return this.#asked[name] === undefined ? {} : ({ [name]: this.text(name) } as { readonly [K in N]: string })
  }

  texts(name: string): string[] {
    const value = this.#asked[name]
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    throw new GatewayError('BAD_REQUEST', `"${name}" must be a list of texts`)
  }

  record(name: string): JsonObject {
    const value = this.#asked[name]
    if (isJsonObject(value)) return value
    throw new GatewayError('BAD_REQUEST', `"${name}" must be an object`)
  }
}

type Service = (
  question: ScriptQuestion,
  reach: Partial<ScriptReach>,
  step: ScriptStep | undefined,
  job: ScriptJob | undefined,
) => Promise<JsonValue>

const services: Readonly<Record<string, Service>> = {
  async targets(_question, { targets }) {
    if (targets?.names === undefined)
      throw new GatewayError('NOT_SUPPORTED', 'scripts of this kind cannot list targets')
    return targets.names().map((name) => ({ name, isCluster: isCluster(targets.get(name)) }))
  },

  clusterUrl: async (question, reach) => clusterOf(question, reach).address,

  async clusterCall(question, reach, step) {
    const method = methods.find((one) => one === question.text('method'))
    if (method === undefined) throw new GatewayError('BAD_REQUEST', `unknown method ${question.text('method')}`)
    const path = question.text('path')
    const cluster = clusterOf(question, reach)
    const request = method === 'GET' ? undefined : writing(step, question)
    const action = actions[method]
    const changes: TargetChange[] =
      action === undefined ? [] : [{ subject: 'entry', action, attribute: 'object', value: path.replace(/\?.*$/, '') }]
    await request?.planChanges?.(changes)
    const { status, body } = await cluster.call({
      method,
      path,
      ...question.optionalText('body'),
      ...question.optionalText('contentType'),
    })
    if (status >= 200 && status <= 299) for (const change of changes) request?.audit(change)
    return { status, body }
  },

  async findUser(question, reach, step) {
    const name = question.text('target')
    const found = await targetOf(question, reach).findUser(
      question.text('userID'),
      question.texts('attributes'),
      step?.context.forTarget(name) ?? reading,
    )
    if (found === undefined) return null
    return { userID: found.userID, attributes: found.attributes.toObject(), groups: [...found.groups] }
  },

  /** All rows, as a search has all entries. What SQLite reads, nothing can stop. */
  async readRows(question, reach) {
    const target = targetOf(question, reach)
    if (!hasQueries(target) || !target.stopsReads) {
      throw new GatewayError('NOT_SUPPORTED', `scripts read PostgreSQL only, not "${question.text('target')}"`)
    }
    const rows = await target.readRows(question.text('statement'), {}, maxRows + 1)
    if (rows.length > maxRows) throw new GatewayError('BAD_REQUEST', `the statement returns more than ${maxRows} rows`)
    return rows.map((row) => ({ ...row }))
  },

  groupExists: async (question, reach) =>
    (await groupsOf(question, reach).findGroup(question.text('group'))) !== undefined,

  async addGroup(question, reach, step) {
    const attributes: Record<string, string[]> = Object.create(null)
    for (const [name, value] of Object.entries(question.record('attributes'))) attributes[name] = [String(value)]
    const [groups, name, request] = [groupsOf(question, reach), question.text('group'), writing(step, question)]
    // The target reports its own change; this is for a lost report.
    if (request.planChanges !== undefined && (await groups.findGroup(name)) === undefined) {
      await request.planChanges(newGroupChanges(name, Attributes.from(attributes)))
    }
    await groups.createGroup(name, attributes, request)
    return null
  },

  async deleteGroup(question, reach, step) {
    const [groups, name, request] = [groupsOf(question, reach), question.text('group'), writing(step, question)]
    if (request.planChanges !== undefined && (await groups.findGroup(name)) !== undefined) {
      await request.planChanges([entryChange('entry', 'delete', 'name', name)])
    }
    await groups.deleteGroup(name, request)
    return null
  },

  encrypt: async (question, reach) => sealing(reach).seal(boundedText(question, 'text')),

  decrypt: async (question, reach) => sealing(reach).open(boundedText(question, 'sealed', 2 * maxSecretLength)),

  /** In a step, it runs when the step is committed, in the name of the same requester. */
  async startWorkflow(question, _reach, step, job) {
    const allowed = (step ?? job)?.workflows
    if (allowed === undefined) {
      throw new GatewayError('NOT_SUPPORTED', 'only a workflow task or a job may start a workflow')
    }
    const call = scriptCall(question, allowed)
    job?.start(call)
    if (step === undefined) return null
    const { run, user, bound, effects } = step.context
    if (question.text('requestor') !== run.requester) {
      throw new GatewayError('BAD_REQUEST', 'the requestor must be that of the running workflow')
    }
    if (bound !== undefined && !sameLogin(call.user.userID, user.userID)) {
      throw new GatewayError('BAD_REQUEST', 'the caller may act for their own user only')
    }
    effects.start({ ...call, head: { ...call.head, requester: run.requester }, asynchronous: true })
    return null
  },

  async groupsOfExternal(question, { groupMappings }) {
    const wanted = externalKey(question.text('name'))
    const found = (await mappingsOf(groupMappings)).filter(({ external }) => externalKey(external) === wanted)
    return [...new Set(found.map(({ group }) => group))]
  },

  async externalOfGroup(question, { groupMappings }) {
    const wanted = question.text('name').toLowerCase()
    return (await mappingsOf(groupMappings)).findLast(({ group }) => group === wanted)?.external ?? null
  },

  async search(question, { directory }) {
    if (directory === undefined) throw new GatewayError('NOT_SUPPORTED', 'scripts of this kind cannot search')
    const scope = (['base', 'one', 'sub'] as const).find((one) => one === question.text('scope')) ?? 'base'
    const attributes = question.texts('attributes')
    const entries = await directory.search({
      base: parsed(question.text('base'), (text) => Dn.parse(text)),
      scope,
      filter: parsed(question.text('filter'), parseFilter),
      limit: maxEntries + 1,
      ...(attributes.length === 0 ? {} : { attributes }),
    })
    if (entries.length > maxEntries) throw new GatewayError('BAD_REQUEST', `more than ${maxEntries} entries match`)
    return entries.map((entry) => ({ dn: entry.dn.toString(), attributes: shownAttributes(entry).toObject() }))
  },
}

function scriptCall(question: ScriptQuestion, allowed: readonly string[]): ScriptCall {
  const [name, userID] = [question.text('workflow'), question.text('userID')]
  const given = question.record('params')
  if (!allowed.includes(name)) {
    throw new GatewayError('NOT_SUPPORTED', `the script may not start "${name}"; name it in allowedWorkflow`)
  }
  if (given[executionType] !== asynchronously) {
    throw new GatewayError('NOT_SUPPORTED', 'set UNISON_EXEC_TYPE to UNISON_EXEC_ASYNC: a script waits for no workflow')
  }
  if (userID === '') throw new GatewayError('BAD_REQUEST', 'the user of the workflow has no login')
  const params: Record<string, string> = Object.create(null)
  for (const [key, value] of Object.entries(given)) {
    if (key === executionType) continue
    if (isEngineKey(key)) throw new GatewayError('BAD_REQUEST', `the parameter "${key}" belongs to the engine`)
    params[key] = String(value)
  }
  const reader = new PluginAnswerReader('executeWorkflow', 'BAD_REQUEST')
  const groups = question.texts('groups')
  const reason = question.text('reason')
  return {
    head: { workflow: name, reason: reason === '' ? undefined : reason },
    user: { userID, attributes: reader.attributes(question.record('attributes')), groups },
    keepGroups: groups.length === 0,
    params,
  }
}

function sealing({ scriptSecrets }: Partial<ScriptReach>): ScriptSecrets {
  if (scriptSecrets !== undefined) return scriptSecrets
  throw new GatewayError('NOT_SUPPORTED', 'scripts of this kind cannot encrypt')
}

function boundedText(question: ScriptQuestion, name: string, limit = maxSecretLength): string {
  const text = question.text(name)
  if (text.length <= limit) return text
  throw new GatewayError('BAD_REQUEST', `a text to encrypt has at most ${maxSecretLength} characters`)
}

async function mappingsOf(mappings: GroupMappings | undefined): Promise<readonly GroupMapping[]> {
  if (mappings !== undefined) return mappings.list()
  throw new GatewayError('NOT_SUPPORTED', 'scripts of this kind cannot read group mappings')
}

const executionType = 'UNISON.EXEC.TYPE'
const asynchronously = 'UNISON.EXEC.ASYNC'

const methods: readonly ClusterCall['method'][] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const actions: Readonly<Partial<Record<ClusterCall['method'], 'add' | 'replace' | 'delete'>>> = {
  POST: 'add',
  PUT: 'replace',
  PATCH: 'replace',
  DELETE: 'delete',
}

/** For reads outside of workflows. */
const reading: TargetRequest = {
  workflow: { id: 'script', name: 'script' },
  idempotencyKey: 'script',
  requestor: 'script',
  params: {},
  log: silentLogger,
  audit: () => {},
}

function parsed<T>(text: string, parse: (text: string) => T): T {
  try {
    return parse(text)
  } catch (cause) {
    throw new GatewayError('BAD_REQUEST', cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

function targetOf(question: ScriptQuestion, { targets }: Partial<ScriptReach>): Target {
  if (targets === undefined) throw new GatewayError('NOT_SUPPORTED', 'scripts of this kind cannot use targets')
  return targets.get(question.text('target'))
}

function clusterOf(question: ScriptQuestion, reach: Partial<ScriptReach>): ClusterCalls {
  const target = targetOf(question, reach)
  if (isCluster(target) && target.calls !== undefined) return target.calls
  throw new GatewayError('NOT_SUPPORTED', `the target "${question.text('target')}" is not a Kubernetes cluster`)
}

function groupsOf(question: ScriptQuestion, reach: Partial<ScriptReach>): GroupTarget {
  const target = targetOf(question, reach)
  if (hasGroups(target)) return target
  throw new GatewayError('NOT_SUPPORTED', `the target "${question.text('target')}" has no groups of its own`)
}

function writing(step: ScriptStep | undefined, question: ScriptQuestion): TargetRequest {
  if (step !== undefined) return step.context.forTarget(question.text('target'))
  throw new GatewayError('NOT_SUPPORTED', 'only a workflow task may change a target; start a workflow instead')
}
