import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, pluginParameters, readPluginCode } from '#modules/shared/plugin/plugin-code.ts'
import { maxBodyKilobytes, plainRequest, plainSubject, readHeaders } from '#modules/shared/plugin/plugin-request.ts'
import { defineFilter, type Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import { readParameters } from '#sdk/module/parameters.ts'

interface PluginFilterConfig {
  readonly code: PluginCode
  readonly maxBodyBytes: number
}

const functionName = 'handle'

/** The caller is authenticated by now, so the plug-in gets no credentials that it could misuse. */
const withheld: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization'])

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
        args: [await plainRequest(request, { maxBodyBytes, withheld }), context],
        request: 1,
      })
      const answer = readFilterAnswer(value, new PluginAnswerReader(functionName))
      return answer.kind === 'response' ? answer.response : addHeaders(await next(), answer.headers)
    },
    close: () => plugin.close(),
  }
}

type FilterAnswer =
  | { readonly kind: 'response'; readonly response: GatewayResponse }
  | { readonly kind: 'next'; readonly headers: GatewayResponse['headers'] }

const contents = ['body', 'json', 'bodyBase64'] as const
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Passing on must be explicit: an answer that is neither a response nor `next: true` throws, so that a function that
 * forgets to return its refusal lets no request through.
 */
function readFilterAnswer(value: JsonValue | undefined, reader: PluginAnswerReader): FilterAnswer {
  const answer = reader.object(value)
  const isNext = Object.hasOwn(answer, 'next')
  const known: readonly string[] = isNext ? ['next', 'headers'] : ['status', 'headers', ...contents]
  const unknown = Object.keys(answer).find((name) => !known.includes(name))
  if (unknown !== undefined) throw reader.malformed(`it has the unknown field "${unknown}"`)
  const headers = readHeaders(answer['headers'], reader)
  if (!isNext) return { kind: 'response', response: readResponse(answer, headers, reader) }
  if (answer['next'] !== true) throw reader.malformed('next must be true')
  return { kind: 'next', headers }
}

/** The headers replace those of the answer; cookies are set beside its own. */
function addHeaders(response: GatewayResponse, added: GatewayResponse['headers']): GatewayResponse {
  const headers: Record<string, string | string[]> = { ...response.headers }
  for (const [name, value] of Object.entries(response.headers)) {
    const own = added[name.toLowerCase()]
    if (own === undefined) continue
    delete headers[name]
    if (name.toLowerCase() === 'set-cookie') headers['set-cookie'] = [value, own].flat()
  }
  return { ...response, headers: { ...added, ...headers } }
}

function readResponse(
  answer: JsonObject,
  headers: Record<string, string | string[]>,
  reader: PluginAnswerReader,
): GatewayResponse {
  const { status } = answer
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) {
    throw reader.malformed('status must be a whole number from 200 to 599')
  }
  const [content, ...others] = contents.filter((name) => Object.hasOwn(answer, name))
  if (content === undefined) return { status, headers }
  if (others.length > 0) throw reader.malformed(`it may have one of ${contents.join(', ')}`)
  if (bodiless.has(status)) throw reader.malformed(`an answer with status ${status} has no ${content}`)
  const value = answer[content]
  if (content === 'json') {
    const type = { 'content-type': 'application/json; charset=utf-8' }
    return { status, headers: { ...type, ...headers }, body: JSON.stringify(value) }
  }
  if (typeof value !== 'string') throw reader.malformed(`${content} must be a text`)
  if (content === 'bodyBase64') {
    const type = { 'content-type': 'application/octet-stream' }
    return { status, headers: { ...type, ...headers }, body: Buffer.from(value, 'base64') }
  }
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers }, body: value }
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
