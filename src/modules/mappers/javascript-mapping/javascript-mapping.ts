import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, isJsonObject, type JsonValue } from '#kernel/json.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import { defineMapper } from '#sdk/mapper.ts'
import { PluginAnswerReader } from '#sdk/plugin-answer.ts'
import { loadPluginCode } from '#sdk/plugin-code.ts'

const functionName = 'doMapping'
const timeoutMillis = 10_000
const memoryMegabytes = 64
const idleMillis = 30_000

/**
 * `target,namespace,name[,includes…]`: runs the code of the JavaScriptMapping object `name`. The first two say where
 * the predecessor looks for the object; here all objects are in the configuration. `name` alone will do.
 */
export default defineMapper({
  className: 'mappers.JavaScriptMapping',
  aliases: ['com.tremolosecurity.mapping.JavaScriptMapping'],
  prepare: (parameters, path, issues, context) => {
    const given = parameters.map((parameter) => parameter.trim()).filter((parameter) => parameter !== '')
    const [name, ...includes] = given.length === 1 ? given : given.slice(2)
    if (name === undefined) {
      issues.error(path, 'the mapper takes "target,namespace,name[,includes]" or "name"')
      return undefined
    }
    for (const mapping of [name, ...includes]) context.refer('javascript mapping', mapping, path)
    const limits = { timeoutMillis, memoryMegabytes, config: {} }
    const code = {
      inline: undefined,
      file: undefined,
      includes: [...includes, name],
      folder: context.folder,
      ...limits,
    }
    return {
      reads: undefined,
      create: async (host) => {
        const plugin = await PluginHost.open({
          ...(await loadPluginCode(code, host)),
          name: `JavaScriptMapping "${name}"`,
          functions: [functionName],
          globals: { name },
          timeoutMillis,
          memoryMegabytes,
          log: host.log,
          idleMillis,
          start: () => [],
        })
        if (!plugin.has(functionName)) {
          await plugin.close()
          throw new Error(`the JavaScriptMapping "${name}" has no function ${functionName}`)
        }
        return {
          async map(source, attribute) {
            const { value } = await plugin.call({ function: functionName, args: [plainSource(source), attribute] })
            return readValues(value)
          },
          close: () => plugin.close(),
        }
      },
    }
  },
})

/** `attributes` as texts, and `json` where the source holds more than texts. */
function plainSource(source: MappingSource): JsonValue {
  const attributes: Record<string, readonly string[]> = Object.create(null)
  const json: Record<string, JsonValue> = Object.create(null)
  if (source.names === undefined) {
    throw new GatewayError('INTERNAL', 'a JavaScriptMapping cannot be used here: the attributes are not listed')
  }
  for (const name of source.names()) {
    if (isForbiddenKey(name)) continue
    attributes[name] = source.values(name)
    const document = source.json?.(name)
    if (document !== undefined) json[name] = document
  }
  return { userID: source.userID, attributes, groups: source.groups, json }
}

/** One text, a list of texts, `{ values }`, or nothing. */
function readValues(answer: JsonValue | undefined): readonly string[] {
  const reader = new PluginAnswerReader(functionName)
  if (answer === undefined || answer === null) return []
  if (typeof answer === 'string') return [answer]
  return reader.texts(isJsonObject(answer) ? answer['values'] : answer, 'it')
}
