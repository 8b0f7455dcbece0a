import { basename } from 'node:path'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'
import { codeFolder, moduleFile } from '#sdk/plugin/plugin-code.ts'
import { mappingLimits, openMappingFunction } from './javascript-mapping.ts'

/** `module[,texts…]`: a mapper in a file. Its `init` gets the texts. */
export default defineMapper({
  className: 'mappers.Plugin',
  aliases: [],
  prepare: (parameters, path, issues, context) => {
    const [module = '', ...texts] = parameters.map((parameter) => parameter.trim())
    if (module === '') {
      issues.error(path, 'the mapper takes "module[,texts]", where module is a file with the function doMapping')
      return undefined
    }
    const file = moduleFile(module, path, issues, context)
    if (file === undefined) return undefined
    const code = { inline: undefined, file, includes: [], ...codeFolder(context), config: {}, ...mappingLimits }
    const name = `mapper "${basename(file)}"`
    return {
      reads: undefined,
      create: (host) => openMappingFunction({ code, name, globals: { name: basename(file) }, init: [texts] }, host),
    }
  },
})
