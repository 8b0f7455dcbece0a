import type { RegistrationHost } from '#features/registration/host.ts'
import type { Subject } from '#identity/subject.ts'
import type { Issues } from '#kernel/issues.ts'
import { isForbiddenKey, type JsonObject } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Closable } from '#kernel/scope.ts'
import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { legacyParameters, openPlugin, type PluginCode, readLegacyCode } from '#sdk/plugin/plugin-code.ts'
import { plainSubject } from '#sdk/plugin/plugin-request.ts'
import { isCluster } from '#sdk/target/kubernetes-cluster.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { settingParams } from './setting-params.ts'

/** A registration that the form accepts. */
export interface SentForm {
  readonly values: ReadonlyMap<string, string>
  readonly subject: Subject
  readonly reason: string | undefined
}

/** The workflow of a registration, with its request parameters. */
export interface ChosenWorkflow {
  readonly workflow: string
  readonly values: ReadonlyMap<string, string>
  readonly params: Readonly<Record<string, string>>
}

/** Chooses the workflow of each registration. */
export interface RegistrationHandler extends Closable {
  /** The errors are for the user. */
  choose(form: SentForm): Promise<ChosenWorkflow | { readonly errors: readonly string[] }>
}

export interface PreparedHandler {
  readonly className: string
  /** The workflow, if it is always the same. */
  readonly workflow: string | undefined
  create(host: RegistrationHost): Promise<RegistrationHandler>
}

type Prepare = (settings: Params, issues: Issues, context: ParseContext) => Omit<PreparedHandler, 'className'>

/** Reads `callWorkflowClassName` and `callWorkflowInit`. Undefined, with an issue, for an unknown class. */
export function readHandler(
  className: string,
  settings: readonly string[],
  params: Params,
  issues: Issues,
  context: ParseContext,
): PreparedHandler | undefined {
  const name = className.slice(className.lastIndexOf('.') + 1)
  const prepare = Object.hasOwn(handlers, name) ? handlers[name] : undefined
  if (prepare === undefined) {
    const known = Object.keys(handlers).join(', ')
    const message = `"callWorkflowClassName": no handler named "${className}"; there are ${known}`
    issues.error(params.pathOf('callWorkflowClassName'), message)
    return undefined
  }
  const path = params.pathOf('callWorkflowInit')
  const given = settingParams(settings, path, (i) => params.pathOf('callWorkflowInit', i), issues)
  return { className: name, ...prepare(given, issues, context) }
}

const namespaceParameters = {
  workflowName: text({ about: 'The workflow.', required: true, reference: 'workflow' }),
  targetName: text({
    about: 'The cluster, unless the form has a field `cluster`.',
    required: true,
    reference: 'target',
  }),
  projectAttributeName: text({ about: 'The field with the name of the namespace.', required: true }),
  checkIfExists: flag({ about: 'An existing namespace is refused.', fallback: true }),
  javaScript: text({ about: 'Not used.' }),
}

const prepareNamespaceCheck: Prepare = (settings, issues, context) => {
  const given = readParameters(namespaceParameters, settings, issues, context)
  const { workflowName: workflow, targetName, projectAttributeName, checkIfExists } = given
  return {
    workflow,
    create: async ({ targets }) => ({
      async choose({ values }) {
        const cluster = values.get('cluster') ?? targetName
        const namespace = values.get(projectAttributeName) ?? ''
        if (namespace === '') return { errors: ['The name of the namespace is missing'] }
        const target = (targets.names?.() ?? [targetName]).includes(cluster) ? targets.get(cluster) : undefined
        if (target === undefined || !isCluster(target)) return { errors: [`There is no cluster "${cluster}"`] }
        const found = checkIfExists ? await target.objects.get(namespaces, namespace) : undefined
        if (found !== undefined) return { errors: ['Namespace name already exists'] }
        return {
          workflow,
          values,
          params: { namespace, cluster, 'fully-qualified-namespace': `${cluster}.${namespace}` },
        }
      },
    }),
  }
}

const namespaces = { group: '', version: 'v1', plural: 'namespaces' } as const

const chooseName = 'createTremoloUser'
const paramsName = 'setWorkflowParameters'

/** How OpenUnison calls them. */
const signatures: LegacySignatures = {
  init: [parameter('registerConfig', 0)],
  [chooseName]: [parameter('newUser', 0), parameter('list', 1), parameter('subject', 2)],
  [paramsName]: [parameter('map', 0), parameter('newUser', 1), parameter('subject', 2)],
}

const scriptParameters = legacyParameters('javaScript')

const prepareScript: Prepare = (settings, issues, context) => {
  const values = readParameters(scriptParameters, settings, issues, context)
  const script = { name: 'javaScript', inline: values.javaScript, signatures }
  const code = readLegacyCode(values, script, Object.keys(scriptParameters), settings, issues, context)
  return { workflow: undefined, create: (host) => openScript(code, host) }
}

async function openScript(code: PluginCode, host: RegistrationHost): Promise<RegistrationHandler> {
  const plugin = await openPlugin(code, host, {
    name: `a registration of "${host.name}"`,
    functions: ['init', chooseName, paramsName],
    required: [chooseName, paramsName],
    init: [code.config],
  })
  // Scripts hand values from the first function to the second in a global, so that registrations must not mix.
  const turns = new KeyedQueue({ maxPending: maxWaiting })
  return {
    choose: ({ values, subject, reason }) =>
      turns.run('', async () => {
        const user = plainSubject(subject)
        const sent = { attributes: Object.fromEntries(values), ...(reason === undefined ? {} : { reason }) }
        const first = { function: chooseName, args: [sent, [], user], returnArguments: true } as const
        const { value, args } = await plugin.call(first)
        const reader = new PluginAnswerReader(chooseName)
        const errors = reader.texts(args[1], 'errors').slice(0, maxErrors)
        if (errors.length > 0) return { errors: errors.map((error) => error.slice(0, maxErrorLength)) }
        const workflow = reader.text(value, 'the workflow')
        const changed = reader.object(args[0], 'newUser')
        const second = { function: paramsName, args: [{}, changed, user], returnArguments: true } as const
        const { args: after } = await plugin.call(second)
        return {
          workflow,
          values: new Map(Object.entries(textFields(changed['attributes'] as JsonObject, reader))),
          params: requestParameters(after[0] as JsonObject, new PluginAnswerReader(paramsName)),
        }
      }),
    close: () => plugin.close(),
  }
}

const maxWaiting = 100
const maxErrors = 20
const maxErrorLength = 1_000

function requestParameters(value: JsonObject, reader: PluginAnswerReader): Record<string, string> {
  const params = textFields(value, reader)
  const reserved = Object.keys(params).find(isEngineKey)
  if (reserved === undefined) return params
  throw reader.malformed(`the request key "${reserved}" belongs to the engine and cannot be set`)
}

/** Numbers and flags become texts; what is null is left out. */
function textFields(value: JsonObject | undefined, reader: PluginAnswerReader): Record<string, string> {
  const fields = Object.entries(reader.object(value)).flatMap(([name, field]) => {
    if (field === null) return []
    if (name === '' || isForbiddenKey(name) || typeof field === 'object') {
      throw reader.malformed(`"${name}" must be a name with a text`)
    }
    return [[name, String(field)] as const]
  })
  return Object.fromEntries(fields)
}

/** By the last part of OpenUnison's class name. */
const handlers: Readonly<Record<string, Prepare>> = {
  K8sProjectCheck: prepareNamespaceCheck,
  JavaScriptRegister: prepareScript,
}
