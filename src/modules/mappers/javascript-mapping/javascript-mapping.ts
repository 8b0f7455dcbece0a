import { mappingSignatures } from '#legacy-script/legacy-signatures.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import { mappingLimits, openMappingFunction } from './mapping-function.ts'

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
    const code = {
      inline: undefined,
      file: undefined,
      includes: [...includes, name],
      folder: context.folder,
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
