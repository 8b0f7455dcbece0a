import { readPositional } from '#adapters/mappers/shared/mapper-parameters.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'

const placeholder: readonly string[] = ['none@none.com']

/** The first of the user's `mail`, or a placeholder for systems that require an address. */
export default defineMapper({
  className: 'mappers.DefaultEmail',
  aliases: ['com.tremolosecurity.mapping.DefaultEmail'],
  prepare: (parameters, path, issues) =>
    readPositional([], parameters, path, issues) && {
      // A missing `mail` is what this mapper is for, so it is not a read that something must produce.
      reads: [],
      create: () => ({
        map: (source) => {
          const first = source.values('mail').find((value) => value !== '')
          return first === undefined ? placeholder : [first]
        },
      }),
    },
})
