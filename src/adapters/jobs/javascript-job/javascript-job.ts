import { hash } from 'node:crypto'
import { ownIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import { defineJob, type JobHost } from '#sdk/job/job.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, pluginParameters, readPluginCode } from '#sdk/plugin/plugin-code.ts'
import { type ScriptCall, scriptServices } from '#sdk/plugin/script-services.ts'
import { isEngineKey, type WorkflowCall } from '#sdk/workflow/workflow.ts'

/** A job that is idle for this long ends its process. */
const idleMillis = 30_000

const parameters = {
  ...pluginParameters,
  '<name>': list({ about: 'Any other parameter is passed to `init` and `execute`.' }),
  allowedWorkflow: list({
    about:
      'A workflow that the job may start; may repeat. A script of OpenUnison may also start workflows that it names in plain text; other scripts start none without it.',
    reference: 'workflow',
  }),
}

/** How OpenUnison calls it. */
const legacySignatures: LegacySignatures = { execute: [parameter('manager'), parameter('jobContext', 1)] }

interface JavaScriptJobConfig {
  readonly code: PluginCode
  readonly allowed: readonly string[]
}

/** A job written in JavaScript. It runs in its own process, and may request workflows; all changes are left to these. */
export default defineJob<JavaScriptJobConfig>({
  className: 'jobs.JavaScriptJob',
  aliases: ['com.tremolosecurity.provisioning.scheduler.jobs.JavaScriptJob'],
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    const code = readPluginCode(values, Object.keys(parameters), params, issues, context, legacySignatures)
    const named = (code.starts ?? []).flatMap((name) => name ?? [])
    return { code, allowed: [...values.allowedWorkflow, ...named, ...(code.texts ?? [])] }
  },
  create: async ({ code, allowed }, host) => {
    const job = { name: host.name }
    const plugin = await openPlugin(code, host, {
      name: `the JavaScript job "${host.name}"`,
      functions: ['init', 'execute', 'shutdown'],
      required: ['execute'],
      globals: { name: host.name, job },
      init: [job, code.config],
      idleMillis,
    })
    return {
      async run({ due, attempt, log, signal }) {
        const args = [job, { due: due.toISOString(), attempt, params: code.config }]
        const calls: WorkflowCall[] = []
        const start = (call: ScriptCall): void => {
          if (calls.length >= maxWorkflows) {
            throw new GatewayError('BAD_REQUEST', `a job starts at most ${maxWorkflows} workflows`)
          }
          calls.push(startedBy(host.name, call))
        }
        const serve = scriptServices(host, undefined, { workflows: allowed, start })
        const { value } = await plugin.call({ function: 'execute', args, request: 1, log, serve })
        calls.push(...askedWorkflows(value, allowed, host.name))
        return { workflows: await startWorkflows(calls, due, host, signal) }
      },
      close: () => plugin.close(),
    }
  },
})

const maxWorkflows = 1000

/** The call of a job. */
const startedBy = (job: string, { head, ...call }: ScriptCall): WorkflowCall => ({
  ...call,
  head: { ...head, requester: job, who: { requester: ownIdentity(`job ${job}`) } },
  asynchronous: true,
})

/**
 * The workflows that a job's answer requests. Throws, and none is started, if the answer is malformed or names a
 * workflow that the job may not start.
 */
function askedWorkflows(answer: JsonValue | undefined, allowed: readonly string[], job: string): WorkflowCall[] {
  if (answer === undefined || answer === null) return []
  const reader = new PluginAnswerReader('execute', 'WORKFLOW_FAILED')
  const asked = reader.object(answer)['workflows'] ?? []
  if (!Array.isArray(asked)) throw reader.malformed('workflows must be a list')
  if (asked.length > maxWorkflows) throw reader.malformed(`workflows holds more than ${maxWorkflows}`)
  return asked.map((one: JsonValue, i) => {
    const at = reader.at(i)
    const fields = at.object(one)
    const name = at.text(fields['name'], 'name')
    if (!allowed.includes(name)) throw at.malformed(`the workflow "${name}" is not one of allowedWorkflow`)
    const params: Record<string, string> = Object.create(null)
    for (const [key, value] of Object.entries(at.object(fields['params'] ?? {}, 'params'))) {
      if (isEngineKey(key)) throw at.malformed(`the parameter "${key}" belongs to the engine`)
      params[key] = at.text(value, `params.${key}`)
    }
    return startedBy(job, {
      head: { workflow: name, ...at.optionalText('reason', fields['reason']) },
      user: {
        userID: at.text(fields['userID'], 'userID'),
        attributes: at.attributes(fields['attributes'] ?? {}),
        groups: at.texts(fields['groups'] ?? [], 'groups'),
      },
      keepGroups: fields['groups'] === undefined,
      params,
    })
  })
}

/** Starts each once for the due time, however often the job runs for it. Returns how many were new. */
async function startWorkflows(
  calls: readonly WorkflowCall[],
  due: Date,
  host: Pick<JobHost, 'name' | 'runs'>,
  signal: AbortSignal,
): Promise<number> {
  const seen = new Map<string, number>()
  let started = 0
  for (const call of calls) {
    signal.throwIfAborted()
    const body = JSON.stringify([call.head.workflow, call.user.userID])
    const nth = seen.get(body) ?? 0
    seen.set(body, nth + 1)
    const bodyHash = hash('sha256', body, 'base64url')
    const key = { scope: `job ${host.name}`, key: `${due.toISOString()} ${nth} ${bodyHash}`, bodyHash }
    const outcome = await host.runs.start(call, key)
    if (outcome.kind === 'started') started++
  }
  return started
}
