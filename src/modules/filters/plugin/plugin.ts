import { pluginParameters, readPluginCode } from '#modules/shared/plugin/plugin-code.ts'
import { maxBodyKilobytes } from '#modules/shared/plugin/plugin-request.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { openPluginFilter, type PluginFilterConfig } from './plugin-filter.ts'

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
