import {
  loadPluginCode,
  type PluginCode,
  pluginParameters,
  readPluginCode,
} from '#modules/shared/plugin/plugin-code.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import { defineJob } from '#sdk/job/job.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { askedWorkflows, startWorkflows } from './started-workflows.ts'

/** A job that did nothing for so long gives its process back. */
const idleMillis = 30_000

const parameters = {
  ...pluginParameters,
  allowedWorkflow: list({
    about: 'A workflow that the job may start. Without any, it starts none.',
    reference: 'workflow',
  }),
}

interface JavaScriptJobConfig {
  readonly code: PluginCode
  readonly allowed: readonly string[]
}

/** A job written in JavaScript. It works in a process of its own, and may ask for workflows to be started. */
export default defineJob<JavaScriptJobConfig>({
  className: 'jobs.JavaScriptJob',
  aliases: ['com.tremolosecurity.provisioning.scheduler.jobs.JavaScriptJob'],
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    const code = readPluginCode(values, Object.keys(parameters), params, issues, context)
    return { code, allowed: values.allowedWorkflow }
  },
  create: async ({ code, allowed }, host) => {
    const job = { name: host.name }
    const plugin = await PluginHost.open({
      ...(await loadPluginCode(code, host)),
      name: `the JavaScript job "${host.name}"`,
      functions: ['init', 'execute', 'shutdown'],
      globals: { name: host.name, job },
      timeoutMillis: code.timeoutMillis,
      memoryMegabytes: code.memoryMegabytes,
      log: host.log,
      idleMillis,
      start: () => [{ function: 'init', args: [job, code.config] }],
    })
    if (!plugin.has('execute')) {
      await plugin.close()
      throw new Error("the job's code has no function execute")
    }
    return {
      async run({ due, attempt, log, signal }) {
        const args = [job, { due: due.toISOString(), attempt, params: code.config }]
        const { value } = await plugin.call({ function: 'execute', args, request: 1, log })
        const calls = askedWorkflows(value, allowed, host.name)
        return { workflows: await startWorkflows(calls, due, host, signal) }
      },
      close: () => plugin.close(),
    }
  },
})
