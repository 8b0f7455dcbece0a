import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { GatewayError } from '#kernel/errors.ts'

/** What `npm ci` built, as it is served. */
export interface BuiltPortal {
  /** The page, with addresses that start with `./` and an empty block for the settings. */
  readonly page: string
  /** By file name; every name has a hash of the content in it. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** Files are compressed or plain; of those that are compressed, what few ask for is unpacked for them. */
export type Asset = { readonly type: string; readonly br?: Buffer } & (
  | { readonly gzip: Buffer }
  | { readonly plain: Buffer; readonly gzip?: undefined }
)

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
  woff2: 'font/woff2',
  png: 'image/png',
}

const built = fileURLToPath(new URL('../../../../portal/dist/', import.meta.url))

/**
 * Reads it into memory, all of it, since it is small. The page comes first: a build that is placed meanwhile leaves its
 * assets. Throws when there is none.
 */
export async function readBuiltPortal(folder = built): Promise<BuiltPortal> {
  try {
    const page = await readFile(`${folder}index.html`, 'utf8')
    const names = await readdir(`${folder}assets`)
    const assets = new Map<string, Asset>()
    for (const name of names) {
      const type = types[name.split('.').at(-1) ?? '']
      if (type === undefined) continue
      const read = (end: string) => ifThere(`${folder}assets/${name}${end}`)
      const [br, gzip] = await Promise.all([read('.br'), read('.gz')])
      const plain = gzip === undefined ? await read('') : undefined
      if (gzip !== undefined) assets.set(name, { type, gzip, ...(br && { br }) })
      else if (plain !== undefined) assets.set(name, { type, plain, ...(br && { br }) })
    }
    return { page, assets }
  } catch (cause) {
    throw new GatewayError('INTERNAL', 'the portal was not built: run "npm ci" with development dependencies', {
      cause,
    })
  }
}

/** An asset of a build that nobody needs any more may go while the others are read. */
async function ifThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw cause
  }
}
