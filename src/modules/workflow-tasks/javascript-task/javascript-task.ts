import { type LegacySignatures, parameter } from '#legacy-script/legacy-signatures.ts'
import { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import {
  loadPluginCode,
  type PluginCode,
  parsePluginCode,
  pluginParameters,
} from '#modules/shared/plugin/plugin-code.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { defineCustomTask, next, stop, type WorkflowTask } from '#sdk/workflow/workflow-task.ts'
import { applyTaskChanges, plainTaskState } from './task-state.ts'

const className = 'tasks.JavaScriptTask'

/** A task that did nothing for so long gives its process back. */
const idleMillis = 30_000

/** How the predecessor calls them. */
const legacySignatures: LegacySignatures = {
  init: [parameter('task'), parameter('attributes', 1)],
  reInit: [parameter('task')],
  doTask: [parameter('user', 0), parameter('taskRequest', 1)],
}

/** A workflow task written in JavaScript: it may change the user and the request, and stop the workflow. */
export default defineCustomTask<PluginCode>({
  className,
  aliases: ['com.tremolosecurity.provisioning.customTasks.JavaScriptTask'],
  parameters: pluginParameters,
  parse: parsePluginCode(legacySignatures),
  flow: () => ({ ...noFlow, opaque: true, runsCode: true }),
  create: openJavaScriptTask,
})

/** Loads the code and runs `init`; rejects with the reason when either fails. */
export async function openJavaScriptTask(
  code: PluginCode,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript'>,
): Promise<WorkflowTask> {
  const task = { name: host.name }
  const plugin = await PluginHost.open({
    ...(await loadPluginCode(code, host)),
    name: `a JavaScript task of "${host.name}"`,
    functions: ['init', 'reInit', 'doTask', 'shutdown'],
    globals: { name: host.name, task },
    timeoutMillis: code.timeoutMillis,
    memoryMegabytes: code.memoryMegabytes,
    log: host.log,
    idleMillis,
    start: (restarted) => [
      { function: 'init', args: [task, code.config] },
      ...(restarted ? [{ function: 'reInit', args: [task] }] : []),
    ],
  })
  if (!plugin.has('doTask')) {
    await plugin.close()
    throw new Error("the task's code has no function doTask")
  }
  return {
    async run(context) {
      const { workflow, requestor, log } = context
      const state = plainTaskState(context)
      const reader = new PluginAnswerReader('doTask', 'WORKFLOW_FAILED')
      const { value, args } = await plugin.call({
        function: 'doTask',
        args: [state.user, state.request, { workflow, requestor }],
        request: 2,
        returnArguments: true,
        log,
        onAudit: (entry) => context.forTarget(className).audit(reader.change(entry)),
      })
      const goOn = reader.flag(value)
      applyTaskChanges(context, state, args, reader)
      return goOn ? next : stop
    },
    close: () => plugin.close(),
  }
}
