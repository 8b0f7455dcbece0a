import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { addHeaders, readFilterAnswer } from '#sdk/plugin/filter-answer.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, pluginParameters, readPluginCode } from '#sdk/plugin/plugin-code.ts'
import { credentialHeaders, maxBodyKilobytes, plainRequest, plainSubject } from '#sdk/plugin/plugin-request.ts'

interface PluginFilterConfig {
  readonly code: PluginCode
  readonly maxBodyBytes: number
}

const functionName = 'handle'

/** Loads the code and runs `init`; rejects with the reason when either fails. */
export async function openPluginFilter(
  { code, maxBodyBytes }: PluginFilterConfig,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript'>,
): Promise<Filter> {
  const plugin = await openPlugin(code, host, {
    name: `a plug-in filter of "${host.name}"`,
    functions: ['init', functionName, 'shutdown'],
    required: [functionName],
    init: [code.config, host.name],
  })
  return {
    async handle({ request, application, mount, pathInfo, subject }, next) {
      const context = { application, mount, pathInfo, subject: plainSubject(subject) }
      const { value } = await plugin.call({
        function: functionName,
        args: [await plainRequest(request, { maxBodyBytes, withheld: credentialHeaders }), context],
        request: 1,
      })
      const answer = readFilterAnswer(value, new PluginAnswerReader(functionName))
      return answer.kind === 'response' ? answer.response : addHeaders(await next(), answer.headers)
    },
    close: () => plugin.close(),
  }
}

const parameters = { ...pluginParameters, maxBodyKilobytes: maxBodyKilobytes(64) }

export default defineFilter<PluginFilterConfig>({
  className: 'filters.Plugin',
  parameters,
  answers: 'sometimes',
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    return {
      code: readPluginCode(values, Object.keys(parameters), params, issues, context),
      maxBodyBytes: values.maxBodyKilobytes * 1024,
    }
  },
  create: openPluginFilter,
  summarize: ({ code }) => (code.file === undefined ? [] : [{ label: 'module', value: code.file }]),
})
