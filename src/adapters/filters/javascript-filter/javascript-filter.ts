import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { failClosed } from '#sdk/plugin/fail-closed.ts'
import { addHeaders, readFilterAnswer } from '#sdk/plugin/filter-answer.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { legacyParameters, openPlugin, type PluginCode, readLegacyCode } from '#sdk/plugin/plugin-code.ts'
import { credentialHeaders, maxBodyKilobytes, plainRequest, plainSubject } from '#sdk/plugin/plugin-request.ts'

const functionName = 'doFilter'
const initName = 'initFilter'

/** How OpenUnison calls them. */
const signatures: LegacySignatures = {
  [initName]: [parameter('filterConfig', 0)],
  [functionName]: [parameter('filterRequest'), parameter('filterResponse'), parameter('filterChain')],
}

const parameters = {
  ...legacyParameters('javaScript'),
  '<name>': list({ about: 'Any other parameter is passed to `initFilter`.' }),
  maxBodyKilobytes: maxBodyKilobytes(1024),
}

interface JavaScriptFilterConfig {
  readonly code: PluginCode
  readonly maxBodyBytes: number
}

/**
 * A filter in OpenUnison's JavaScript. It runs after authentication and rules, so it can refuse a request and never
 * admit one. A script that fails answers 500.
 */
export default defineFilter<JavaScriptFilterConfig>({
  className: 'filters.JavaScriptFilter',
  aliases: ['com.tremolosecurity.proxy.filters.JavaScriptFilter'],
  parameters,
  answers: 'sometimes',
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    const script = { name: 'javaScript', inline: values.javaScript, signatures }
    return {
      code: readLegacyCode(values, script, Object.keys(parameters), params, issues, context),
      maxBodyBytes: values.maxBodyKilobytes * 1024,
    }
  },
  create: openJavaScriptFilter,
})

async function openJavaScriptFilter({ code, maxBodyBytes }: JavaScriptFilterConfig, host: FilterHost): Promise<Filter> {
  const plugin = await openPlugin(code, host, {
    name: `a JavaScript filter of "${host.name}"`,
    functions: [initName, functionName],
    required: [functionName],
    init: [code.config],
    initName,
  })
  return {
    async handle({ request, subject }, next) {
      const plain = await plainRequest(request, { maxBodyBytes, withheld: credentialHeaders })
      const answer = await failClosed(async () => {
        const { value } = await plugin.call({
          function: functionName,
          args: [plain, { subject: plainSubject(subject) }],
        })
        return readFilterAnswer(value, new PluginAnswerReader(functionName))
      })
      return answer.kind === 'response' ? answer.response : addHeaders(await next(), answer.headers)
    },
    close: () => plugin.close(),
  }
}
