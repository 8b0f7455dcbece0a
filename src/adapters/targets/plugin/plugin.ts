import { flag, parsed } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { pluginParameters, readPluginCode } from '#sdk/plugin/plugin-code.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import {
  type Capabilities,
  capabilitiesOf,
  type Demands,
  legacySignatures,
  openPluginTarget,
  type PluginTargetConfig,
} from './plugin-target.ts'

/** `true`, `false`, or undefined if the plug-in's functions decide. */
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
  requireAllFunctions: flag({ about: '`"true"`: the plug-in must have every function there is but those for groups.' }),
  enableUserLookups: demand(
    '`"true"`: the plug-in must have the look-up functions; `"false"`: they are not used. When absent, they are used where they are there, and having only some of them is an error.',
  ),
  enableCreateGroups: demand(
    '`"true"`: the plug-in must have `addGroup` and `deleteGroup`; `"false"`: they are not used. When absent, they are used where they are there.',
  ),
}

/** Undefined, with the reason reported, if functions are missing. */
function capabilities(
  declared: ReadonlySet<string>,
  demands: Demands,
  report: (message: string) => void,
): Capabilities | undefined {
  try {
    return capabilitiesOf((name) => declared.has(name), demands)
  } catch (error) {
    report(error instanceof Error ? error.message : String(error))
    return undefined
  }
}

export default defineTarget<PluginTargetConfig>({
  className: 'targets.Plugin',
  aliases: ['com.tremolosecurity.provisioning.core.providers.JavaScriptTarget'],
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    const code = readPluginCode(values, Object.keys(parameters), params, issues, context, legacySignatures)
    const demands = {
      requireAllFunctions: values.requireAllFunctions,
      lookups: values.enableUserLookups,
      groups: values.enableCreateGroups,
    }
    const at = params.pathOf(code.inline === undefined ? 'module' : 'javaScript')
    const can = code.declared && capabilities(code.declared, demands, (message) => issues.error(at, message))
    return { code, ...demands, can }
  },
  lookups: ({ can }) => can?.lookups,
  passwords: ({ can }) => can?.passwords,
  create: openPluginTarget,
})
