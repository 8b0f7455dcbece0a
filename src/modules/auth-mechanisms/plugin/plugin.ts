import { linkParameters, parseSubjectLink } from '#modules/shared/login/linked-subject.ts'
import { pluginParameters, readPluginCode } from '#modules/shared/plugin/plugin-code.ts'
import { maxBodyKilobytes } from '#modules/shared/plugin/plugin-request.ts'
import { defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
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
