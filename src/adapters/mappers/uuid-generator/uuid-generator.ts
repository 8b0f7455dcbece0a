import { randomUUID } from 'node:crypto'
import { readPositional } from '#adapters/mappers/shared/mapper-parameters.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'

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
