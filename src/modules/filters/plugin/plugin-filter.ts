import { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import { loadPluginCode, type PluginCode } from '#modules/shared/plugin/plugin-code.ts'
import { plainRequest, plainSubject } from '#modules/shared/plugin/plugin-request.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { addHeaders, readFilterAnswer } from './filter-answer.ts'

export interface PluginFilterConfig {
  readonly code: PluginCode
  readonly maxBodyBytes: number
}

const functionName = 'handle'

/** The caller is known by now, so the plug-in needs nothing that it could call others with in the caller's name. */
const withheld: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization'])

/** Loads the code and runs `init`; rejects with the reason when either fails. */
export async function openPluginFilter(
  { code, maxBodyBytes }: PluginFilterConfig,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript'>,
): Promise<Filter> {
  const plugin = await PluginHost.open({
    ...(await loadPluginCode(code, host)),
    name: `a plug-in filter of "${host.name}"`,
    functions: ['init', functionName, 'shutdown'],
    globals: { name: host.name },
    timeoutMillis: code.timeoutMillis,
    memoryMegabytes: code.memoryMegabytes,
    log: host.log,
    start: () => [{ function: 'init', args: [code.config, host.name] }],
  })
  if (!plugin.has(functionName)) {
    await plugin.close()
    throw new Error(`the filter's code has no function ${functionName}`)
  }
  return {
    async handle({ request, application, mount, pathInfo, subject }, next) {
      const context = { application, mount, pathInfo, subject: plainSubject(subject) }
      const { value } = await plugin.call({
        function: functionName,
        args: [await plainRequest(request, { maxBodyBytes, withheld }), context],
        request: 1,
      })
      const answer = readFilterAnswer(value, new PluginAnswerReader(functionName))
      return answer.kind === 'response' ? answer.response : addHeaders(await next(), answer.headers)
    },
    close: () => plugin.close(),
  }
}
