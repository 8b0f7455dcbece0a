import { defineAuthMechanism } from '#sdk/auth-mechanism.ts'
import { linkParameters, parseSubjectLink } from '#sdk/linked-subject.ts'
import { text } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { pluginParameters, readPluginCode } from '#sdk/plugin-code.ts'
import { maxBodyKilobytes } from '#sdk/plugin-request.ts'
import { openPluginMechanism, type PluginMechanismConfig } from './plugin-mechanism.ts'

const parameters = {
  ...pluginParameters,
  ...linkParameters,
  uidAttr: text({ about: 'The attribute that the answer’s `uid` becomes.', fallback: 'uid' }),
  maxBodyKilobytes: maxBodyKilobytes(0),
}

export default defineAuthMechanism<PluginMechanismConfig>({
  className: 'auth.Plugin',
  parameters,
  parse: (params, issues, context) => {
    const values = readParameters(parameters, params, issues, context)
    return {
      code: readPluginCode(values, Object.keys(parameters), params, issues, context),
      link: parseSubjectLink(values, params, issues),
      maxBodyBytes: values.maxBodyKilobytes * 1024,
    }
  },
  create: openPluginMechanism,
})
