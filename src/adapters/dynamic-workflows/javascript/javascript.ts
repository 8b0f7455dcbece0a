import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import { type LegacySignatures, parameter } from '#openunison/scripts/legacy-signatures.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode, parsePluginCode, pluginParameters } from '#sdk/plugin/plugin-code.ts'
import { defineDynamicWorkflow, type ParameterSet } from '#sdk/workflow/dynamic-workflow.ts'

const functionName = 'generateWorkflows'
const maxSets = 1_000

/** The form of OpenUnison's scripts. */
const legacySignatures: LegacySignatures = {
  [functionName]: [parameter('value', 0), parameter('manager'), parameter('attributes', 1), parameter('subject', 2)],
}

/** One row of a workflow for each set of parameters that a script returns. */
export default defineDynamicWorkflow<PluginCode>({
  className: 'dynamicWorkflows.JavaScript',
  aliases: ['com.tremolosecurity.provisioning.dynamicwf.JavaScriptDynamicWorkflows'],
  parameters: {
    ...pluginParameters,
    '<name>': list({ about: 'Any other parameter is passed to `generateWorkflows`.' }),
  },
  parse: parsePluginCode(legacySignatures),
  create: async (code, host) => {
    const plugin = await openPlugin(code, host, {
      name: `dynamic workflow "${host.name}"`,
      functions: [functionName, 'shutdown'],
      required: [functionName],
    })
    return {
      async parameterSets({ dn, uid, attributes, level, chain }) {
        const subject = { dn: dn.toString(), uid, attributes: attributes.toObject(), level, chain }
        const { value } = await plugin.call({ function: functionName, args: [host.name, code.config, subject] })
        return readSets(value)
      },
      close: () => plugin.close(),
    }
  },
})

function readSets(value: JsonValue | undefined): ParameterSet[] {
  const reader = new PluginAnswerReader(functionName)
  if (!Array.isArray(value)) throw reader.malformed('it must be a list')
  if (value.length > maxSets) throw reader.malformed(`it has more than ${maxSets} items`)
  return value.map((item: JsonValue, i) => readSet(item, reader.at(i)))
}

function readSet(item: JsonValue, reader: PluginAnswerReader): ParameterSet {
  const set: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(reader.object(item))) {
    if (name === '' || isForbiddenKey(name)) throw reader.malformed(`"${name}" cannot be a parameter`)
    if (value === null) continue
    if (typeof value === 'object') throw reader.malformed(`"${name}" must be a text`)
    set[name] = String(value)
  }
  return set
}
