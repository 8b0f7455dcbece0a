import { randomUUID } from 'node:crypto'
import { defineMapper } from '#sdk/mapper.ts'
import { readPositional } from '#sdk/mapper-parameters.ts'

/** A new random UUID at every use. */
export default defineMapper({
  className: 'mappers.UUIDGenerator',
  aliases: ['com.tremolosecurity.mappers.UUIDGenerator'],
  prepare: (parameters, path, issues) =>
    readPositional([], parameters, path, issues) && {
      reads: [],
      create: () => ({ map: () => [randomUUID()] }),
    },
})
