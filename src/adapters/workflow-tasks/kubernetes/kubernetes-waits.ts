import { nameTemplate } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { compileJsonPath, type JsonPath } from '#kernel/text/json-path.ts'
import { objectPath } from '#protocols/kubernetes/cluster.ts'
import { parsed, parsedList, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import {
  type CustomTaskPlaces,
  defineCustomTask,
  next,
  type TaskContext,
  type TaskHost,
  type TaskOutcome,
  type TaskPlan,
} from '#sdk/workflow/workflow-task.ts'
import { type ObjectUrl, parseObjectUrl } from './object-url.ts'
import { onCluster, referToCluster, type StepCluster } from './on-cluster.ts'

/** Tasks that wait for a cluster. A waiting run is stored, occupies no worker and continues after a restart. */

const pollSeconds = wholeNumber({
  about: 'How long to wait between two looks, in seconds.',
  fallback: 10,
  min: 1,
  max: 3_600,
})

const timeoutParameter = (fallback: number) =>
  wholeNumber({
    about: 'How long to wait in total, in seconds. Then the run is put on hold for an administrator.',
    fallback,
    min: 1,
    max: 7 * 24 * 3_600,
  })

const url = { about: 'The path of the object in the API; `$key$` is a value of the request.', required: true } as const

/** Waits until an object exists and its values are as wanted. */
export const waitForStatus = defineCustomTask({
  className: 'tasks.WaitForStatus',
  aliases: ['com.tremolosecurity.provisioning.tasks.WaitForStatus'],
  parameters: {
    target: nameTemplate({
      about:
        'The [targets.Kubernetes](../targets/targets.Kubernetes.md) target of the cluster; `$key$` is a value of the request.',
      required: true,
    }),
    uri: parsed('path', parseObjectUrl, url),
    conditions: parsedList('condition', parseCondition, {
      about:
        '`path=value`, such as `.status.phase=Active`: a JSON path of RFC 9535 from the root of the object, and the text that every value it finds must have. `$key$` in the text is a value of the request. All conditions must hold; without any, the object must exist.',
    }),
    timeoutSeconds: timeoutParameter(3_600),
    pollSeconds,
    holdingTarget: text({ about: 'Not used: waiting runs are in the database.' }),
    namespace: text({ about: 'Not used: waiting runs are in the database.' }),
    label: text({ about: 'Not used: waiting runs are in the database.' }),
    syncDr: text({ about: 'Not used: waiting runs are in the database.' }),
  },
  prepare: ({ target, uri, conditions, timeoutSeconds, pollSeconds }, places) => {
    referToCluster(target, 'target', places)
    requireOne(uri, 'uri', 0, places)
    const urls = uri === undefined ? [] : [uri]
    return waiting({ target, urls, conditions, timeoutSeconds, pollSeconds })
  },
})

/** Waits until all of these objects exist. */
export const waitForObjectCreation = defineCustomTask({
  className: 'tasks.WaitForObjectCreation',
  aliases: ['com.tremolosecurity.provisioning.tasks.WaitForObjectCreation'],
  parameters: {
    targetName: nameTemplate({
      about:
        'The [targets.Kubernetes](../targets/targets.Kubernetes.md) target of the cluster; `$key$` is a value of the request.',
      required: true,
    }),
    uris: parsedList('path', parseObjectUrl, { ...url, about: `${url.about} May be repeated.` }),
    timeOutMillis: wholeNumber({
      about: 'How long to wait in total, in milliseconds. Then the run is put on hold for an administrator.',
      fallback: 3_600_000,
      min: 1_000,
      max: 7 * 24 * 3_600_000,
    }),
    pollSeconds,
  },
  prepare: ({ targetName: target, uris: urls, timeOutMillis, pollSeconds }, places) => {
    referToCluster(target, 'targetName', places)
    for (const [i, one] of urls.entries()) requireOne(one, 'uris', i, places)
    return waiting({ target, urls, conditions: [], timeoutSeconds: timeOutMillis / 1000, pollSeconds })
  },
})

function requireOne(
  url: ObjectUrl | undefined,
  name: string,
  i: number,
  { issues, pathOf: at }: CustomTaskPlaces,
): void {
  if (url !== undefined && url.name === undefined) issues.error(at(name, i), `"${name}" must be the path of one object`)
}

interface Condition {
  readonly text: string
  readonly path: JsonPath
  readonly value: Template
}

/** Split at the last `=`, since a path may contain one. Throws an Error that says what is wrong. */
function parseCondition(text: string): Condition {
  const cut = text.lastIndexOf('=')
  if (cut <= 0) throw new Error(`"${text}" is not path=value`)
  const [path, value] = [text.slice(0, cut).trim(), text.slice(cut + 1).trim()]
  const template = { keys: true, attributes: false }
  if (parseTemplate(path, template).keys.length > 0) {
    throw new Error(`"${path}" must be a fixed path: values of a request may only be in the text after "="`)
  }
  return {
    text,
    path: compileJsonPath(path.startsWith('.') ? `$${path}` : path),
    value: parseTemplate(value, template),
  }
}

interface Wait {
  readonly target: Template
  readonly urls: readonly ObjectUrl[]
  readonly conditions: readonly Condition[]
  readonly timeoutSeconds: number
  readonly pollSeconds: number
}

const waiting = (wait: Wait): TaskPlan => ({
  create: (host) => {
    const { run } = onCluster(wait.target, host, (cluster, context) => look(wait, cluster, context, host))
    const until = (): Date => new Date(host.clock().getTime() + wait.timeoutSeconds * 1000)
    const { preview } = onContext(({ signal }) => (signal === undefined ? { kind: 'wait', until: until() } : next))
    return { run, ...(preview && { preview }) }
  },
})

/** The end of the wait, as a key of the engine, which no caller and no other task can set. */
const waitEnd = 'WORKFLOW.waitEnd'

async function look(
  { urls, conditions, timeoutSeconds, pollSeconds }: Wait,
  cluster: StepCluster,
  context: TaskContext,
  { clock }: Pick<TaskHost, 'clock'>,
): Promise<TaskOutcome> {
  const { request, log, signal } = context
  const now = clock().getTime()
  // Without a signal the wait begins: an end in the request is that of an earlier wait that failed.
  const stored = signal === undefined ? undefined : request.get(waitEnd)
  const end = typeof stored === 'number' ? stored : now + timeoutSeconds * 1000
  const missing = await firstMissing(urls, conditions, cluster, context)
  if (missing === undefined) {
    request.delete(waitEnd)
    return next
  }
  if (now >= end) {
    throw new GatewayError('WORKFLOW_FAILED', `gave up after ${timeoutSeconds} seconds: ${missing}`)
  }
  log.info('waits for a Kubernetes object', { target: cluster.target, missing })
  request.set(waitEnd, end)
  return { kind: 'wait', until: new Date(Math.min(end, now + pollSeconds * 1000)) }
}

/** Undefined if all objects are as wanted. A cluster that does not answer is not there yet. */
async function firstMissing(
  urls: readonly ObjectUrl[],
  conditions: readonly Condition[],
  { api, target }: StepCluster,
  context: TaskContext,
): Promise<string | undefined> {
  try {
    for (const url of urls) {
      const { resource, name = '' } = url.render(context)
      const found = await api.get(resource, name)
      const where = `target "${target}": ${objectPath(resource, name)}`
      if (found === undefined) return `${where} does not exist`
      const unmet = conditions.find((condition) => !isMet(condition, found.content as JsonValue, context))
      if (unmet !== undefined) return `${where} does not have ${unmet.text}`
    }
    return undefined
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE') return error.message
    throw error
  }
}

function isMet({ path, value }: Condition, object: JsonValue, context: TaskContext): boolean {
  const wanted = renderTask(value, context)
  const found = path(object)
  return found.length > 0 && found.every((one) => (typeof one === 'string' ? one : JSON.stringify(one)) === wanted)
}
