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

export interface Asset {
  readonly type: string
  readonly plain: Buffer
  readonly br?: Buffer
  readonly gzip?: Buffer
}

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
      const [plain, br, gzip] = await Promise.all(
        ['', '.br', '.gz'].map((end) => ifThere(`${folder}assets/${name}${end}`)),
      )
      if (plain !== undefined) assets.set(name, { type, plain, ...(br && { br }), ...(gzip && { gzip }) })
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
