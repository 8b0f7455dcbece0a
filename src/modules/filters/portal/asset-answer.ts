import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { Asset } from './built-portal.ts'

/** A year: an asset's name changes with its content. */
const cacheControl = 'public, max-age=31536000, immutable'

const unpack = promisify(gunzip)
/** Unpacked once for all who ask, so that a crowd costs no more than one. */
const unpacked = new WeakMap<Buffer, Promise<Buffer>>()

function plainOf(packed: Buffer): Promise<Buffer> {
  const known = unpacked.get(packed) ?? unpack(packed)
  unpacked.set(packed, known)
  return known
}

/** The smallest copy that the browser takes. */
export async function assetAnswer(asset: Asset, acceptEncoding: string): Promise<GatewayResponse> {
  const accepted = acceptedCodings(acceptEncoding)
  const [coding, body] =
    asset.br !== undefined && accepted.has('br')
      ? ['br', asset.br]
      : asset.gzip !== undefined && accepted.has('gzip')
        ? ['gzip', asset.gzip]
        : [undefined, asset.gzip === undefined ? asset.plain : await plainOf(asset.gzip)]
  return {
    status: 200,
    headers: {
      'content-type': asset.type,
      'cache-control': cacheControl,
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
      ...(coding === undefined ? {} : { 'content-encoding': coding }),
    },
    body,
  }
}

function acceptedCodings(header: string): ReadonlySet<string> {
  const codings = header.toLowerCase().split(',')
  return new Set(
    codings.flatMap((one) => {
      const [name = '', ...parameters] = one.split(';').map((part) => part.trim())
      return parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [name]
    }),
  )
}
