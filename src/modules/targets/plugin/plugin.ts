import { parsed } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { pluginParameters, readPluginCode } from '#sdk/plugin-code.ts'
import { defineTarget } from '#sdk/target.ts'
import { legacySignatures } from './legacy-signatures.ts'
import { openPluginTarget, type PluginTargetConfig } from './plugin-target.ts'

/** `true`, `false`, or undefined: as the plug-in's functions have it. */
const demand = (about: string) =>
  parsed(
    'flag',
    (value) => {
      const word = value.toLowerCase()
      if (word !== 'true' && word !== 'false') throw new Error(`must be "true" or "false", not "${value}"`)
      return word === 'true'
    },
    { about },
  )

const parameters = {
  ...pluginParameters,
  requireAllFunctions: demand('`true`: the plug-in must have every function there is but those for groups.'),
  enableUserLookups: demand(
    '`true`: the plug-in must have the look-up functions; `false`: they are not used. When absent, they are used where all are there.',
  ),
  enableCreateGroups: demand(
    '`true`: the plug-in must have `addGroup` and `deleteGroup`; `false`: they are not used. When absent, they are used where they are there.',
  ),
}

export default defineTarget<PluginTargetConfig>({
  className: 'targets.Plugin',
  aliases: ['com.tremolosecurity.provisioning.core.providers.JavaScriptTarget'],
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    return {
      code: readPluginCode(values, Object.keys(parameters), params, issues, context, legacySignatures),
      requireAllFunctions: values.requireAllFunctions ?? false,
      lookups: values.enableUserLookups,
      groups: values.enableCreateGroups,
    }
  },
  create: openPluginTarget,
})
