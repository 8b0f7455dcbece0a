import type { Catalog } from '#config/configuration/catalog.ts'
import type { Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { createRegistry } from '#kernel/registry.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { defineAuthorization } from '#sdk/auth/authorization.ts'
import { defineDirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { noFlow, type TaskFlow } from '#sdk/flow/flow.ts'
import { defineJob } from '#sdk/job/job.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import { anything, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { defineNotifier, referNotifier } from '#sdk/notifier/notifier.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import { defineCustomTask, next, type TaskModule } from '#sdk/workflow/workflow-task.ts'

/** A module that is configured and never run. */
const neverRun = (): never => {
  throw new Error('this fake is not to be created')
}

const gatewayParameters = {
  workflowName: list({ about: 'Workflows.', required: true, reference: 'workflow' }),
  deleteWorkflow: text({ about: 'A workflow.', reference: 'workflow', absentReference: 'warning' }),
  lookupTarget: text({ about: 'The target.', reference: 'target' }),
  maps: list({ about: 'What it produces.' }),
  reads: list({ about: 'What it reads back.' }),
  token: text({ about: 'A secret.', secret: true }),
  'label.<name>': text({ about: 'Labels.' }),
}

/** A gateway: starts workflows with the attributes in `maps`, and reads back those in `reads`. */
const gateway = defineFilter({
  className: 'filters.Gateway',
  aliases: ['com.example.Gateway'],
  parameters: gatewayParameters,
  answers: true,
  parse: (params, issues, context) => {
    const read = readParameters(gatewayParameters, params, issues, context)
    const places = (name: 'maps' | 'reads') =>
      read[name].map((attribute, i) => ({ attribute, path: params.pathOf(name, i) }))
    return { read, produces: places('maps'), reads: places('reads') }
  },
  flow: ({ read, produces, reads }) => ({
    produces,
    workflows: read.workflowName,
    reads,
    target: read.lookupTarget,
    given: ['login'],
  }),
  create: neverRun,
})

const placeParameters = { target: text({ about: 'The target.', reference: 'target' }) }

const place = defineDirectoryInsert({
  className: 'directory.Place',
  parameters: placeParameters,
  parse: (params, issues, context) => readParameters(placeParameters, params, issues, context),
  create: neverRun,
})

const header = defineFilter({
  className: 'filters.Header',
  parameters: {},
  answers: false,
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  create: neverRun,
})

const runnerParameters = { workflowName: text({ about: 'A workflow.', required: true, reference: 'workflow' }) }

/** Starts a workflow with unknown attributes. */
const runner = defineFilter({
  className: 'filters.Runner',
  parameters: runnerParameters,
  answers: true,
  parse: (params, issues, context) => readParameters(runnerParameters, params, issues, context),
  create: neverRun,
})

const tokenParameters = {
  realm: text({ about: 'The realm.', required: true }),
  key: text({ about: 'A key.', reference: 'key' }),
}

const token = defineAuthMechanism({
  className: 'auth.Token',
  parameters: tokenParameters,
  initParameters: { cache: wholeNumber({ about: 'Seconds.', fallback: 1 }) },
  parse: (params, issues, context) => readParameters(tokenParameters, params, issues, context),
  create: neverRun,
})

const includeParameters = { chainName: text({ about: 'The chain.', required: true, reference: 'chain' }) }

const include = defineAuthMechanism({
  className: 'auth.Include',
  parameters: includeParameters,
  parse: (params, issues, context) => readParameters(includeParameters, params, issues, context),
  includes: ({ chainName }) => [chainName],
  create: neverRun,
})

const memoryParameters = {
  limit: wholeNumber({ about: 'How many.', fallback: 10 }),
  password: text({ about: 'A secret.', secret: true }),
  tag: list({ about: 'Tags.' }),
}

const memory = defineTarget({
  className: 'targets.Memory',
  parameters: memoryParameters,
  parse: (params, issues, context) => readParameters(memoryParameters, params, issues, context),
  create: neverRun,
})

const noticeParameters = { from: text({ about: 'The sender.', required: true }) }

const notice = defineNotifier({
  className: 'notifiers.Notice',
  delivers: 'both',
  parameters: noticeParameters,
  parse: (params, issues, context) => readParameters(noticeParameters, params, issues, context),
  create: neverRun,
})

const always = defineAuthorization({
  className: 'authorizations.Always',
  parameters: {},
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  create: neverRun,
})

const upper = defineMapper({
  className: 'mappers.Upper',
  aliases: [],
  prepare: (parameters) => ({ reads: parameters, create: neverRun }),
})

const print = defineCustomTask({
  className: 'tasks.Print',
  aliases: ['com.tremolosecurity.provisioning.customTasks.PrintUserInfo'],
  parameters: { message: text({ about: 'The text.', required: true }) },
  prepare: () => ({ create: neverRun }),
})

interface FakeTask {
  readonly fields: readonly string[]
  readonly branches?: boolean
  flow?(fields: Readonly<Record<string, unknown>>, path: Path): Partial<TaskFlow>
  calls?(fields: Readonly<Record<string, unknown>>): string[]
}

function places(value: unknown, path: Path) {
  const names = Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
  return names.map((attribute, i) => ({ attribute, path: [...path, i] }))
}

function fakeTask(taskType: string, { fields, branches = false, flow, calls }: FakeTask): TaskModule {
  return {
    taskType,
    fields: Object.fromEntries(fields.map((name) => [name, anything({ about: name })])),
    branches,
    prepare: (given, path, _issues, context) => {
      const target = given['target']
      if (typeof target === 'string') context.refer('target', target, [...path, 'target'])
      if (taskType === 'tell') referNotifier(String(given['notifier'] ?? ''), path, context)
      const called = calls?.(given) ?? []
      for (const name of called) context.refer('workflow', name, [...path, 'name'])
      return {
        flow: { ...noFlow, ...flow?.(given, path) },
        calls: called,
        create: async () => ({ run: () => next }),
      }
    },
  }
}

const sweepParameters = { days: wholeNumber({ about: 'How many.', fallback: 1 }) }

const sweep = defineJob({
  className: 'jobs.Sweep',
  parameters: sweepParameters,
  parse: (params, issues, context) => readParameters(sweepParameters, params, issues, context),
  create: neverRun,
})

const tasks = [
  fakeTask('provision', {
    fields: ['target', 'attributes'],
    flow: ({ target, attributes }, path) => ({
      provisions: {
        target: String(target),
        attributes: attributes === undefined ? undefined : places(attributes, [...path, 'attributes']),
      },
    }),
  }),
  fakeTask('map', {
    fields: ['produces', 'reads', 'strict'],
    branches: true,
    flow: ({ produces, reads, strict }, path) => ({
      produces: places(produces, [...path, 'produces']),
      reads: places(reads, [...path, 'reads']),
      dropsOthers: strict === true,
    }),
  }),
  fakeTask('set', { fields: ['names'], flow: ({ names }, path) => ({ produces: places(names, [...path, 'names']) }) }),
  fakeTask('use', { fields: ['names'], flow: ({ names }, path) => ({ reads: places(names, [...path, 'names']) }) }),
  fakeTask('when', { fields: ['name'], branches: true }),
  fakeTask('tell', { fields: ['notifier'] }),
  fakeTask('load', { fields: [], flow: () => ({ opaque: true }) }),
  fakeTask('call', { fields: ['name'], calls: ({ name }) => (typeof name === 'string' ? [name] : []) }),
]

/** A customTask that is parsed like the real one: class name and parameters through the context. */
const customTask: TaskModule = {
  taskType: 'customTask',
  fields: {
    className: anything({ about: 'The class.', required: true }),
    params: anything({ about: 'Its parameters.' }),
  },
  branches: false,
  prepare: (given, path, issues, context) => {
    const className = String(given['className'])
    const module = context.customTasks.find(className)
    const params = context.params(isJsonObject(given) ? given['params'] : undefined, [...path, 'params'], issues)
    if (module !== undefined) return { calls: [], ...module.prepare(params, issues, context) }
    issues.error([...path, 'className'], context.customTasks.unknown(className))
    return { calls: [], flow: { ...noFlow, opaque: true }, create: neverRun }
  },
}

/** Small modules for every slot, which show the effect of a configuration. */
export const fakeCatalog: Catalog = {
  auditSinks: createRegistry('audit sink', []),
  authMechanisms: createRegistry('mechanism', [token, include]),
  authorizations: createRegistry('authorization', [always]),
  dynamicWorkflows: createRegistry('dynamic workflow', []),
  filters: createRegistry('filter', [gateway, header, runner]),
  jobs: createRegistry('job', [sweep]),
  mappers: createRegistry('mapper', [upper]),
  notifiers: createRegistry('notifier', [notice]),
  targets: createRegistry('target', [memory]),
  directoryInserts: createRegistry('directory insert', [place]),
  customTasks: createRegistry('custom task', [print]),
  valueSources: createRegistry('value source', []),
  tasks: new Map([...tasks, customTask].map((task) => [task.taskType, task])),
}
