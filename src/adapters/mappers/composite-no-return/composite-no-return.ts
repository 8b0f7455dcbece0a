import { readPositional } from '#adapters/mappers/shared/mapper-parameters.ts'
import { type Composite, parseComposite } from '#identity/mapping/composite.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'

/** A composite whose template is base64, because the commas of JSON would end a parameter. */
export default defineMapper({
  className: 'mappers.CompositeNoReturn',
  aliases: ['com.tremolosecurity.mappers.CompositeNoReturn'],
  prepare: (parameters, path, issues) => {
    const given = readPositional(['template'], parameters, path, issues)
    if (given === undefined) return undefined
    let composite: Composite
    try {
      composite = parseComposite(decodeBase64(given[0]))
    } catch (error) {
      issues.error(path, error instanceof Error ? error.message : String(error))
      return undefined
    }
    if (composite.attributes.length === 0) {
      issues.error(path, 'the decoded template has no placeholder such as ${mail}')
      return undefined
    }
    return { reads: composite.attributes, create: () => ({ map: composite.evaluate }) }
  },
})

/** Strict, since Node's own decoder ignores invalid characters. */
function decodeBase64(text: string): string {
  const packed = text.replace(/\s+/g, '')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(packed) || packed.length % 4 !== 0) {
    throw new Error('the template is not base64')
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(packed, 'base64'))
  } catch (error) {
    throw new Error('the decoded template is not UTF-8 text', { cause: error })
  }
}
