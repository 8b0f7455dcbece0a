import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, pluginParameters, readPluginCode } from '#sdk/plugin/plugin-code.ts'
import { type ScriptReach, scriptServices } from '#sdk/plugin/script-services.ts'
import { isReadOnlyKey } from '#sdk/workflow/workflow.ts'
import {
  type CustomTaskModule,
  next,
  type RequestMap,
  stop,
  type TaskContext,
  type WorkflowTask,
} from '#sdk/workflow/workflow-task.ts'
import { setGroups } from '#sdk/workflow/workflow-user.ts'

const className = 'tasks.JavaScriptTask'

/** A task that is idle for this long ends its process. */
const idleMillis = 30_000

/** How OpenUnison calls them. */
const legacySignatures: LegacySignatures = {
  init: [parameter('task'), parameter('attributes', 1)],
  reInit: [parameter('task')],
  doTask: [parameter('user', 0), parameter('taskRequest', 1)],
}

const parameters = {
  ...pluginParameters,
  allowedWorkflow: list({
    about:
      'A workflow that a script of OpenUnison may start by a name that is not a plain text in the script; may repeat. Plain names need no entry.',
    reference: 'workflow',
  }),
}

/** A workflow task written in JavaScript: it may change the user and the request, and stop the workflow. */
const javaScriptTask: CustomTaskModule = {
  className,
  aliases: ['com.tremolosecurity.provisioning.customTasks.JavaScriptTask'],
  parameters,
  prepare: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    const code = readPluginCode(values, Object.keys(parameters), params, issues, context, legacySignatures)
    const { allowedWorkflow } = values
    if (code.starts?.includes(undefined) === true && allowedWorkflow.length === 0) {
      const message = 'the script starts a workflow whose name is not known beforehand; name it in "allowedWorkflow"'
      issues.warning(params.pathOf('javaScript'), `"javaScript": ${message}`)
    }
    const starts = [...allowedWorkflow, ...(code.starts ?? []).flatMap((name) => name ?? [])]
    return {
      flow: {
        ...noFlow,
        opaque: true,
        runsCode: true,
        writes: true,
        ...(starts.length === 0 ? {} : { starts, mayRead: 'any' }),
      },
      create: (host) => openJavaScriptTask(code, host, starts),
    }
  },
}
export default javaScriptTask

/** Loads the code and runs `init`; rejects with the reason if either fails. */
export async function openJavaScriptTask(
  code: PluginCode,
  host: ModuleHost & Partial<ScriptReach>,
  workflows: readonly string[] = [],
): Promise<WorkflowTask> {
  const task = { name: host.name }
  const plugin = await openPlugin(code, host, {
    name: `a JavaScript task of "${host.name}"`,
    functions: ['init', 'reInit', 'doTask', 'shutdown'],
    required: ['doTask'],
    globals: { name: host.name, task },
    init: [task, code.config],
    reInit: [task],
    idleMillis,
  })
  return {
    async run(context) {
      const { run, log } = context
      const state = plainTaskState(context)
      const reader = new PluginAnswerReader('doTask', 'WORKFLOW_FAILED')
      const { value, args } = await plugin.call({
        function: 'doTask',
        args: [state.user, state.request, { workflow: { id: run.id, name: run.workflow }, requestor: run.requester }],
        request: 2,
        returnArguments: true,
        log,
        serve: scriptServices(host, { context, workflows }),
        onAudit: (entry) => context.forTarget(className).audit(reader.change(entry)),
      })
      const continues = reader.flag(value)
      applyTaskChanges(context, state, args, reader)
      return continues ? next : stop
    },
    close: () => plugin.close(),
  }
}

/** The part of the user and the request that `doTask` gets: data only, and no password. */
interface TaskState {
  readonly user: JsonObject
  readonly request: JsonObject
}

function plainTaskState({ user, request }: Pick<TaskContext, 'user' | 'request'>): TaskState {
  const { userID, groups, requestReason } = user
  const reason = requestReason === undefined ? {} : { requestReason }
  const plain: Record<string, JsonValue> = Object.create(null)
  for (const [key, value] of request) {
    const text = jsonOf(value)
    if (text !== undefined) plain[key] = JSON.parse(text) as JsonValue
  }
  return { user: { userID, attributes: user.attributes.toObject(), groups: [...groups], ...reason }, request: plain }
}

/**
 * Applies the function's changed arguments to the workflow. Throws, and changes nothing, if they are not a user and a
 * request, or if a key of the engine was set.
 */
function applyTaskChanges(
  context: Pick<TaskContext, 'user' | 'request'>,
  sent: TaskState,
  args: readonly JsonValue[],
  reader: PluginAnswerReader,
): void {
  const changed = reader.object(args[0], 'user')
  const request = reader.object(args[1], 'request')
  const userID = reader.text(changed['userID'], 'user.userID')
  const attributes = reader.attributes(changed['attributes'])
  const groups = reader.texts(changed['groups'], 'user.groups')
  const keys = changedKeys(sent.request, request)
  for (const key of keys) {
    if (isReadOnlyKey(key)) throw reader.malformed(`the request key "${key}" belongs to the engine and cannot be set`)
  }

  context.user.userID = userID
  context.user.attributes = attributes
  if (jsonOf(groups) !== jsonOf(sent.user['groups'])) setGroups(context.user, groups)
  for (const key of keys) setKey(context.request, key, request)
}

function changedKeys(sent: JsonObject, request: JsonObject): string[] {
  const all = new Set([...Object.keys(sent), ...Object.keys(request)])
  return [...all].filter((key) => jsonOf(own(sent, key)) !== jsonOf(own(request, key)))
}

function setKey(map: RequestMap, key: string, request: JsonObject): void {
  const value = own(request, key)
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

const own = (object: JsonObject, key: string): JsonValue | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** Undefined for values that are not data. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
