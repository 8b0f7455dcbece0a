import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey, isJsonObject, type JsonValue } from '#kernel/json.ts'
import { mappingSignatures } from '#openunison/scripts/legacy-signatures.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { codeFolder, openPlugin, type PluginCode } from '#sdk/plugin/plugin-code.ts'
import type { Mapper } from '#sdk/target/mapper.ts'

/**
 * `target,namespace,name[,includes…]`: runs the code of the JavaScriptMapping object `name`. The first two say where
 * OpenUnison looks for the object; here all objects are in the configuration. `name` alone is enough.
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
    const code = {
      inline: undefined,
      file: undefined,
      includes: [...includes, name],
      ...codeFolder(context),
      signatures: mappingSignatures,
      config: {},
      ...mappingLimits,
    }
    return {
      reads: undefined,
      create: (host) => openMappingFunction({ code, name: `JavaScriptMapping "${name}"`, globals: { name } }, host),
    }
  },
})

const functionName = 'doMapping'
/** A mapper that is idle for this long ends its process. */
const idleMillis = 30_000

/** An expression has no place for limits, so they are the same for all. */
export const mappingLimits = { timeoutMillis: 10_000, memoryMegabytes: 64 }

interface MappingFunction {
  readonly code: PluginCode
  /** For the log. */
  readonly name: string
  /** Global values of the code. */
  readonly globals: Readonly<Record<string, JsonValue>>
  /** The arguments of `init`, if the code has it. */
  readonly init?: readonly JsonValue[]
}

/** A mapper that gets its values from the code's function `doMapping`. Rejects if the code has none. */
export async function openMappingFunction(
  { code, name, globals, init }: MappingFunction,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript'>,
): Promise<Mapper> {
  const plugin = await openPlugin(code, host, {
    name,
    functions: [...(init === undefined ? [] : ['init']), functionName],
    required: [functionName],
    globals,
    init,
    idleMillis,
  })
  return {
    async map(source, attribute) {
      const { value } = await plugin.call({ function: functionName, args: [plainSource(source), attribute] })
      return readValues(value)
    },
    close: () => plugin.close(),
  }
}

/** `attributes` as texts, and `json` if the source has more than texts. */
function plainSource(source: MappingSource): JsonValue {
  const attributes: Record<string, readonly string[]> = Object.create(null)
  const json: Record<string, JsonValue> = Object.create(null)
  if (source.names === undefined) {
    throw new GatewayError('INTERNAL', 'a mapper in JavaScript cannot be used here: the attributes are not listed')
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
